// A thread's runs, one after the other, as they are begun.

import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import type { Owner } from "../core/ids.ts";
import { type Phase, trackPhase } from "../core/phase.ts";
import { isSettled, type RunRecord } from "../core/records.ts";
import type { Cursor, EventLog, LogEntry, RunKey, Stores } from "../core/stores.ts";

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

// A part of a run's log as it is now, without waiting for more of it.

/** The entries after the number `after`, to the number `last`, which is there. Throws `events_expired`. */
export async function* logPart(
  log: EventLog,
  run: RunKey,
  { after, last }: { after: number; last: number },
): AsyncGenerator<LogEntry, void, void> {
  if (after >= last) return;
  const reading = new AbortController();
  try {
    for await (const batch of log.read(run, after, reading.signal))
      for (const entry of batch) {
        if (entry.seq <= last) yield entry;
        if (entry.seq >= last) return;
      }
  } finally {
    reading.abort();
  }
}

// What a run is at, told by any process: read off the end of its log.
/** Events that are looked at. */
const TAIL = 256;

/** Nothing for a run that has ended: that is what its status says. */
export async function currentPhase(log: EventLog, key: RunKey, run: RunRecord): Promise<Phase | undefined> {
  if (isSettled(run.status)) return undefined;
  const { first, last } = await log.bounds(key);
  if (last === 0) return { name: run.status === "pending" ? "idle" : "processing" };
  const track = trackPhase();
  let phase: Phase = { name: "processing" };
  try {
    // The log holds events as they were checked when they were made.
    for await (const { json } of logPart(log, key, { after: Math.max(first - 1, last - TAIL), last }))
      phase = track(JSON.parse(json) as StreamEvent);
    return phase;
  } catch (error) {
    // So much was said meanwhile that this is gone: whoever wants to know asks again.
    if (hasCode(error, "events_expired")) return undefined;
    throw error;
  }
}
