// Carries out a schedule that is due: starts the run of its slot, skips or retries the slot, or pauses the schedule.

import { AppError, type ErrorCode, hasCode } from "../../agent/core/errors.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Runs } from "../runs/executor.ts";
import { type RunCommand, startRun } from "../runs/start.ts";
import { iso, isTemporary, runOfSlot, type ScheduleRecord, type ScheduleSpec } from "./schedule.ts";
import { dueSlot, slotsAfter } from "./timing.ts";

export interface FireServices {
  readonly runs: Runs;
  /** Why the API key with this id may start no more runs. Undefined: it may. */
  endOfKey(api_key: string): Promise<AppError | undefined>;
  /** To be called before a run of a temporary thread is started. Throws `events_expired` when the thread was deleted after that run. */
  announce(owner: Owner, thread_id: string): Promise<void>;
}

export interface Schedule {
  readonly owner: Owner;
  readonly id: string;
  readonly record: ScheduleRecord;
}

/** The record that follows, and when it is due again, in ms since 1970. */
export interface NextRecord {
  readonly record: ScheduleRecord;
  readonly due?: number | undefined;
}

/** Time between two looks at a run that a slot waits for, in ms. */
const QUEUE_MS = 5_000;
/** Maximum time for which a refused start is tried again, in ms. It is shorter when the next slot comes earlier. */
const RETRY_MS = 3_600_000;
const PAUSE = { base: 2_000, cap: 300_000, jitter: 0.5 };

/** Refusals that pass by themselves: of limits, and of a thread with many runs. */
const PASSING: readonly ErrorCode[] = ["limit_exceeded", "thread_busy", "queue_full"];
/** Failures of the server. The worker logs them and tries again once its lease ends. */
const OWN_FAILURES: readonly ErrorCode[] = ["unavailable", "internal"];

/**
 * Carries out what is due of a schedule. Repeating it, after a crash before its result was stored, starts no second run: the run of a
 * slot is found by its idempotency key. Throws when the store or this process fails; nothing is decided then.
 */
export async function fire(services: FireServices, schedule: Schedule, next: number): Promise<NextRecord> {
  const { owner, id, record } = schedule;
  // The store's clock may be ahead of this one.
  const now = Math.max(Date.now(), next);
  const { spec, retry, api_key } = record;
  const ended = api_key === undefined ? undefined : await services.endOfKey(api_key);
  if (ended) return paused(record, "credentials_ended", ended.message, now);
  const { start, done } = dueSlot(spec, spec.catch_up, { next, now, isRetried: retry !== undefined });
  if (start === undefined)
    return moved(record, done, { outcome: "skipped", message: "The slot was missed." });
  const waitsFor = spec.overlap === "allow" ? undefined : await unfinished(services.runs, owner, record);
  if (waitsFor !== undefined && spec.overlap === "queue")
    return again(record, { start, now, pause: QUEUE_MS, message: waitsFor });
  if (waitsFor !== undefined) return moved(record, done, { outcome: "skipped", message: waitsFor });
  try {
    const run = await startScheduled(services, owner, spec, runOfSlot(id, record, start));
    const started = { thread_id: run.thread_id, run_id: run.id, slot: start };
    return moved({ ...record, run: started }, done, { outcome: "started" });
  } catch (error) {
    // Its run has ended: this process died before it could write so.
    if (hasCode(error, "events_expired")) return moved(record, done, { outcome: "started" });
    return refused(record, { start, done, now }, error);
  }
}

export async function startScheduled(
  { runs, announce }: Pick<FireServices, "runs" | "announce">,
  owner: Owner,
  spec: ScheduleSpec,
  command: RunCommand,
): Promise<RunRecord> {
  if (isTemporary(spec)) await announce(owner, command.thread_id);
  return startRun(runs, owner, command);
}

/** Why the run before has not ended. Undefined: it has. */
async function unfinished(
  { stores }: Runs,
  owner: Owner,
  { run }: ScheduleRecord,
): Promise<string | undefined> {
  if (!run) return undefined;
  const before = await stores.runs.get(owner, run.thread_id, run.run_id);
  if (!before) return undefined;
  if (!isSettled(before.status)) return `Run \`${before.id}\` of ${iso(run.slot)} had not ended.`;
  if (before.status !== "interrupted") return undefined;
  const thread = await stores.threads.get(owner, run.thread_id);
  const isOpen = thread?.status === "interrupted" || thread?.status === "busy";
  return isOpen ? `Run \`${before.id}\` of ${iso(run.slot)} waited for an answer.` : undefined;
}

function refused(
  record: ScheduleRecord,
  { start, done, now }: { readonly start: number; readonly done: number; readonly now: number },
  error: unknown,
): NextRecord {
  // Another process starts it at once.
  if (hasCode(error, "shutting_down")) return again(record, { start, now, pause: 0, message: error.message });
  if (!isRefusal(error)) throw error;
  if (!PASSING.includes(error.code)) return paused(record, "start_refused", error.message, now);
  const { since = now, attempts = 0 } = record.retry ?? {};
  const following = slotsAfter(record.spec, start, 1)[0] ?? Number.POSITIVE_INFINITY;
  const pause = backoff(attempts, PAUSE);
  return now + pause < Math.min(since + RETRY_MS, following)
    ? again(record, { start, now, pause, message: error.message })
    : moved(record, done, { outcome: "failed", message: error.message });
}

const isRefusal = (error: unknown): error is AppError =>
  error instanceof AppError && !OWN_FAILURES.includes(error.code);

/** The slot stays, and is looked at again in `pause` ms. */
function again(
  record: ScheduleRecord,
  {
    start,
    now,
    pause,
    message,
  }: { readonly start: number; readonly now: number; readonly pause: number; readonly message: string },
): NextRecord {
  const { since = now, attempts = 0 } = record.retry ?? {};
  const retry = { since, attempts: attempts + 1, message };
  return { record: { ...record, next: start, retry }, due: now + pause };
}

/** The slot is done. */
function moved(
  record: ScheduleRecord,
  done: number,
  slot: Pick<NonNullable<ScheduleRecord["slot"]>, "outcome" | "message">,
): NextRecord {
  const [next] = slotsAfter(record.spec, done, 1);
  return { record: { ...record, next, retry: undefined, slot: { at: done, ...slot } }, due: next };
}

function paused(
  record: ScheduleRecord,
  reason: "credentials_ended" | "start_refused",
  message: string,
  since: number,
): NextRecord {
  return { record: { ...record, next: undefined, retry: undefined, pause: { reason, message, since } } };
}
