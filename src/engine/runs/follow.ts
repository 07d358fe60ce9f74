// Continues reading from a position. Reads a thread's runs one after the other, part of a run's log, or a run's current
// phase.

import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../../agent/core/errors.ts";
import type { Message } from "../../agent/core/message.ts";
import type { Output } from "../../agent/core/output.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import { storedEvent } from "../../agent/core/stored-json.ts";
import type { Cursor, EventLog, LogEntry, RunKey, Stores } from "../../agent/core/stores.ts";
import { backoff } from "../../lib/backoff.ts";
import { isTickSpent, sharedTick } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import { type Phase, trackPhase } from "../../protocol/phase.ts";

/**
 * The time between checks for a new run, in milliseconds. The checks are needed because the announcement of a
 * run may be lost. The first checks follow each other closely, and later checks are less frequent.
 */
const CHECK = { base: 500, cap: 10_000 };

const START: Cursor = { seq: 0 };

/** A position in a thread: a run and an event in it. */
export interface RunCursor {
  readonly run: RunRecord;
  readonly after: Cursor;
}

export interface ThreadCursor {
  readonly owner: Owner;
  readonly threadId: string;
  /** Defaults to the start of the run in progress, or of the next one. */
  readonly from?: RunCursor | undefined;
}

/**
 * Yields the next position to read from, first up to the end of one run, then from the next run. Ends when the thread
 * is deleted or `signal` aborts.
 */
export async function* followThread(
  stores: Stores,
  { owner, threadId, from }: ThreadCursor,
  signal: AbortSignal,
): AsyncGenerator<RunCursor, void, void> {
  const newest = from?.run ?? (await stores.runs.begun(owner, threadId));
  const start = from ?? (newest && !isSettled(newest.status) ? { run: newest, after: START } : undefined);
  if (start) yield start;
  for await (const run of runsAfter(stores, { owner, threadId, last: newest?.id }, signal))
    yield { run, after: START };
}

export interface NextRunQuery {
  readonly owner: Owner;
  readonly threadId: string;
  /** The previous run. Absent if the thread has had no runs. */
  readonly last: string | undefined;
}

/** Yields each run that begins after `last`. Ends when the thread is deleted or `signal` aborts. */
export async function* runsAfter(
  stores: Stores,
  query: NextRunQuery,
  signal: AbortSignal,
): AsyncGenerator<RunRecord, void, void> {
  for (let { last } = query; !signal.aborted; ) {
    const run = await nextRun(stores, { ...query, last }, signal);
    if (!run) return;
    last = run.id;
    yield run;
  }
}

async function nextRun(
  stores: Stores,
  query: NextRunQuery,
  signal: AbortSignal,
): Promise<RunRecord | undefined> {
  const { owner, threadId, last = "" } = query;
  const found = await awaited(stores, query, signal, async () => {
    if (!(await isSameThread(stores, query))) return "gone";
    return stores.runs.begun(owner, threadId, last);
  });
  return found === "gone" ? undefined : found;
}

/** Resolves with true once the thread exists, or when `signal` aborts. */
export async function untilThread(
  stores: Stores,
  { owner, threadId }: Pick<NextRunQuery, "owner" | "threadId">,
  signal: AbortSignal,
): Promise<boolean> {
  const found = await awaited(stores, { owner, threadId }, signal, () => stores.threads.get(owner, threadId));
  return found !== undefined;
}

/**
 * Returns what `look` finds. Calls `look` whenever a run of the thread starts, and periodically. Retries
 * while the store is unreachable. Returns undefined if `signal` aborts first.
 */
async function awaited<T>(
  { bus }: Stores,
  { owner, threadId }: Pick<NextRunQuery, "owner" | "threadId">,
  signal: AbortSignal,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  for (let attempt = 0; !signal.aborted; attempt++) {
    const wait = backoff(attempt, CHECK);
    // Subscribes before looking, so a run that starts in between is not missed.
    const events = bus.subscribe(owner, AbortSignal.any([signal, AbortSignal.timeout(wait)]));
    try {
      const found = await look();
      if (found !== undefined) return found;
      for await (const { event, data } of events)
        if (event === "run_started" && data.thread_id === threadId) break;
    } catch (error) {
      if (hasCode(error, "unavailable")) await sleep(wait, undefined, { signal, ref: false }).catch(() => {});
      else if (!hasCode(error, "events_expired")) throw error;
    } finally {
      await events.return();
    }
  }
  return undefined;
}

/** If a thread was deleted and created again with the same id, it does not have the old runs. */
async function isSameThread(
  { runs, threads }: Stores,
  { owner, threadId, last }: NextRunQuery,
): Promise<boolean> {
  return Boolean(await (last === undefined ? threads.get(owner, threadId) : runs.get(owner, threadId, last)));
}

/** Returns the output of an ended run. Returns undefined if it has none or its events have expired. */
export async function outputOf(log: EventLog, key: RunKey, run: RunRecord): Promise<Output | undefined> {
  if (run.status !== "success") return undefined;
  const { last } = await log.bounds(key);
  if (last === 0) return undefined;
  try {
    for await (const entry of readLogRange(log, key, { after: last - 1, last })) {
      const event = storedEvent(entry);
      if (event.event === "done") return event.data.output;
    }
    return undefined;
  } catch (error) {
    if (hasCode(error, "events_expired")) return undefined;
    throw error;
  }
}

/**
 * Yields the entries after `after` up to `last`, which must exist. Does not wait for further entries. Throws
 * `events_expired`.
 */
export async function* readLogRange(
  log: EventLog,
  run: RunKey,
  { after, last }: { after: number; last: number },
): AsyncGenerator<LogEntry, void, void> {
  if (after >= last) return;
  const reading = new AbortController();
  try {
    for await (const batch of log.read(run, after, reading.signal))
      for (const entry of batch) {
        if (isTickSpent()) await sharedTick(run.owner.tenant);
        if (entry.seq <= last) yield entry;
        if (entry.seq >= last) return;
      }
  } finally {
    reading.abort();
  }
}

/** Returns the messages from the entries, except those of subagents, which belong to their own threads. */
export async function messagesIn(entries: readonly LogEntry[], tenant: string): Promise<Message[]> {
  const messages: Message[] = [];
  for (const entry of entries) {
    if (entry.event !== "on_message") continue;
    if (isTickSpent()) await sharedTick(tenant);
    const event = storedEvent(entry);
    if (event.event === "on_message" && !event.path) messages.push(event.data.message);
  }
  return messages;
}

/** The number of events at the end of the log that are used to find the phase. */
const TAIL = 256;

/**
 * Returns the current phase of a run that executes in any process. Returns undefined after the run ends, because its
 * status is then enough.
 */
export async function currentPhase(log: EventLog, key: RunKey, run: RunRecord): Promise<Phase | undefined> {
  if (isSettled(run.status)) return undefined;
  const { first, last } = await log.bounds(key);
  if (last === 0) return { name: run.status === "pending" ? "idle" : "processing" };
  const track = trackPhase();
  let phase: Phase = { name: "processing" };
  try {
    for await (const entry of readLogRange(log, key, { after: Math.max(first - 1, last - TAIL), last }))
      phase = track(storedEvent(entry));
    return phase;
  } catch (error) {
    // The run wrote many events in the meantime, and the log dropped these entries.
    if (hasCode(error, "events_expired")) return undefined;
    throw error;
  }
}
