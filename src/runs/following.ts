// A thread's runs, one after the other, as they are begun.

import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import { isSettled, type RunRecord } from "../core/records.ts";
import type { Cursor, Stores } from "../core/stores.ts";

/**
 * How long a thread is not looked at on which nothing is heard, as word of a new run may be lost: not for long at
 * first, as who listens may be heard of a moment later.
 */
const FIRST_LOOK_MS = 500;
const LOOK_MS = 10_000;

const BEGINNING: Cursor = { seq: 0 };

/** Where somebody stands in a thread: in this run, after this event. */
export interface Place {
  readonly run: RunRecord;
  readonly after: Cursor;
}

export interface Following {
  readonly owner: Owner;
  readonly threadId: string;
  /** Absent: where the run begins that runs now, or else the next one. */
  readonly from?: Place;
}

/** Yields where to read on: to the end of that run, and then the next one. Ends with the thread, or with `signal`. */
export async function* follow(
  stores: Stores,
  { owner, threadId, from }: Following,
  signal: AbortSignal,
): AsyncGenerator<Place, void, void> {
  const newest = from?.run ?? (await stores.runs.begun(owner, threadId));
  const start = from ?? (newest && !isSettled(newest.status) ? { run: newest, after: BEGINNING } : undefined);
  if (start) yield start;
  for (let last = newest?.id; !signal.aborted; ) {
    const run = await nextRun(stores, { owner, threadId, last }, signal);
    if (!run) return;
    last = run.id;
    yield { run, after: BEGINNING };
  }
}

interface Wanted {
  readonly owner: Owner;
  readonly threadId: string;
  /** The run before it; absent: the thread has had none. */
  readonly last: string | undefined;
}

/** A store that is away ends nothing: it is asked again. */
async function nextRun(stores: Stores, wanted: Wanted, signal: AbortSignal): Promise<RunRecord | undefined> {
  const { owner, threadId, last = "" } = wanted;
  const { runs, bus } = stores;
  for (let wait = FIRST_LOOK_MS; !signal.aborted; wait = Math.min(2 * wait, LOOK_MS)) {
    // It listens before it looks: what begins in between is heard.
    const heard = bus.subscribe(owner, AbortSignal.any([signal, AbortSignal.timeout(wait)]));
    try {
      if (!(await isThere(stores, wanted))) return undefined;
      const run = await runs.begun(owner, threadId, last);
      if (run) return run;
      for await (const { event, data } of heard)
        if (event === "run_started" && data.thread_id === threadId) break;
    } catch (error) {
      if (hasCode(error, "unavailable")) await sleep(wait, undefined, { signal, ref: false }).catch(() => {});
      else if (!hasCode(error, "events_expired")) throw error;
    } finally {
      await heard.return();
    }
  }
  return undefined;
}

/** Another thread of the same name does not have its runs. */
async function isThere({ runs, threads }: Stores, { owner, threadId, last }: Wanted): Promise<boolean> {
  return Boolean(await (last === undefined ? threads.get(owner, threadId) : runs.get(owner, threadId, last)));
}
