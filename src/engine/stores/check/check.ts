// Reads a whole store and reports contradictions. Keeps only one thread in memory at a time.

import { setTimeout as sleep } from "node:timers/promises";
import type { Inspection, ThreadFacts } from "./facts.ts";
import { broken, type Finding, LATE_MS, wrongIn, wrongSum, wrongWith } from "./rules.ts";

/** The number of objects that were checked. */
export interface CheckCounts {
  threads: number;
  runs: number;
  messages: number;
  /** The number of log entries, according to the last entry of each run's log. */
  events: number;
}

interface Options {
  readonly signal: AbortSignal;
  /** The time to wait before rechecking a suspected fault in a store that is in use, in milliseconds. */
  readonly againMs?: number;
}

const AGAIN_MS = 1_000;

/** Yields each finding as soon as it is found. Throws the store's errors and the reason of `signal`. */
export async function* checkStore(
  store: Inspection,
  { signal, againMs = AGAIN_MS }: Options,
): AsyncGenerator<Finding, CheckCounts, void> {
  const counts: CheckCounts = { threads: 0, runs: 0, messages: 0, events: 0 };
  let lastWorked = 0;

  for await (const names of store.threads()) {
    const wrong = new Map<string, readonly Finding[]>();
    for (const name of names) {
      signal.throwIfAborted();
      const thread = await store.thread(name);
      if (!thread) continue;
      count(counts, thread);
      lastWorked = Math.max(lastWorked, thread.updatedAt);
      const found = wrongIn(thread);
      if (found.length > 0) wrong.set(name, found);
    }
    yield* lasting(wrong, async (name) => {
      const thread = await store.thread(name);
      return thread ? wrongIn(thread) : [];
    });
  }

  for await (const text of store.remains())
    yield* lasting(new Map([[text, [broken(text)]]]), async () =>
      (await store.remain(text)) ? [broken(text)] : [],
    );
  for await (const page of store.due(lastWorked - LATE_MS))
    for (const each of page) yield* wrongWith(each, lastWorked);
  for await (const page of store.sums()) for (const each of page) yield* wrongSum(each);
  return counts;

  /** Yields only the findings that are reported with the same text when a store in use is read again a moment later. */
  async function* lasting(
    wrong: ReadonlyMap<string, readonly Finding[]>,
    again: (name: string) => Promise<readonly Finding[]>,
  ): AsyncGenerator<Finding, void, void> {
    if (wrong.size > 0 && !store.isOfOneMoment) await sleep(againMs, undefined, { signal });
    for (const [name, found] of wrong) {
      const still = store.isOfOneMoment ? undefined : new Set((await again(name)).map(wordsOf));
      yield* found.filter((each) => still?.has(wordsOf(each)) ?? true);
    }
  }
}

/** The thread's next run may have a finding with the same text, but it is a different finding. */
const wordsOf = ({ run = "", text }: Finding) => `${run} ${text}`;

function count(counts: CheckCounts, { runs, messages }: ThreadFacts): void {
  counts.threads++;
  counts.runs += runs.length;
  counts.messages += messages.count;
  for (const { log } of runs) counts.events += log.last;
}
