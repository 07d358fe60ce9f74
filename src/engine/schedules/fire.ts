// Processes a due schedule: starts the run for its slot, skips or retries the slot, or pauses the schedule.

import { AppError, type ErrorCode, hasCode } from "../../agent/core/errors.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Runs } from "../runs/executor.ts";
import { type RunCommand, startRun } from "../runs/start.ts";
import {
  iso,
  isTemporary,
  type PendingStart,
  runOfSlot,
  type ScheduleRecord,
  type ScheduleSpec,
} from "./schedule.ts";
import { dueSlot, slotsAfter } from "./timing.ts";

export interface FireServices {
  readonly runs: Runs;
  /** Returns the reason why the API key with this id can no longer start runs, or undefined if it can. */
  endOfKey(api_key: string): Promise<AppError | undefined>;
  /**
   * Must be called before a run of a temporary thread starts. Throws `events_expired` if the run has ended and its
   * thread was deleted.
   */
  announce(owner: Owner, thread_id: string): Promise<void>;
  /** Called for each run that a slot starts, possibly more than once per run. Must return at once and not throw. */
  onStarted?(owner: Owner, schedule: string, run: Pick<RunRecord, "id">): void;
}

export interface StoredSchedule {
  readonly owner: Owner;
  readonly id: string;
  readonly record: ScheduleRecord;
}

/** The next record of a schedule and its next due time, in milliseconds since 1970. */
export interface NextRecord {
  readonly record: ScheduleRecord;
  readonly due?: number | undefined;
}

/** How often to check a run that a slot waits for, in milliseconds. */
const QUEUE_MS = 5_000;
/**
 * The maximum time for which a refused start is retried, in milliseconds. Retries end earlier if the next slot comes
 * first.
 */
const RETRY_MS = 3_600_000;
const PAUSE = { base: 2_000, cap: 300_000, jitter: 0.5 };

/**
 * How long an agent must be missing before its schedules are paused, in milliseconds. During a deployment, only some
 * processes may have the agent.
 */
const MISSING_MS = 600_000;

/** Temporary refusals: a limit, or a thread with too many runs. */
const PASSING: readonly ErrorCode[] = ["limit_exceeded", "thread_busy", "queue_full"];
/** Server failures. The worker logs them and retries once its lease ends. */
const OWN_FAILURES: readonly ErrorCode[] = ["unavailable", "internal"];

/** A due slot: the slot to start, and the last slot that counts as done once its run has started. */
export interface ChosenSlot {
  readonly start: number;
  readonly done: number;
}

/**
 * Chooses the slot to start, or returns the next record if there is nothing to start. `next` is the first slot that is
 * not done, and `now` is the store's time. If a process dies after choosing a slot, the same slot is chosen again.
 * Throws if the store fails, in which case nothing is decided.
 */
export async function choose(
  services: FireServices,
  { owner, record }: StoredSchedule,
  { next, now }: { readonly next: number; readonly now: number },
): Promise<ChosenSlot | NextRecord> {
  const { spec, retry, api_key } = record;
  const ended = api_key === undefined ? undefined : await services.endOfKey(api_key);
  if (ended) return paused(record, "credentials_ended", ended.message, now);
  if (retry?.cause === "starting") return { start: next, done: next };
  const { start, done } = dueSlot(spec, spec.catch_up, { next, now, isRetried: retry !== undefined });
  if (start === undefined)
    return moved(record, done, { outcome: "skipped", message: "The slot was missed." });
  const waitsFor = spec.overlap === "allow" ? undefined : await unfinished(services.runs, owner, record);
  if (waitsFor === undefined) return { start, done };
  if (spec.overlap === "skip") return moved(record, done, { outcome: "skipped", message: waitsFor });
  return again(record, { start, now, pause: QUEUE_MS, cause: "waiting", message: waitsFor });
}

/**
 * Returns the record to store before the run of a slot starts. If this process dies, the slot stays the same and does
 * not count as missed.
 */
export function starting(record: ScheduleRecord, { start }: ChosenSlot, now: number): ScheduleRecord {
  const retry = { cause: "starting", since: now, attempts: 0, message: "Its run is being started." } as const;
  return { ...record, next: start, retry };
}

/**
 * Starts the run of a slot. A repeated call does not start a second run, because the run has an idempotency key. Throws
 * if the store or this process fails.
 */
export async function fire(
  services: FireServices,
  { owner, id, record }: StoredSchedule,
  { start, done, now }: ChosenSlot & { readonly now: number },
): Promise<NextRecord> {
  try {
    const run = await startScheduled(services, owner, record.spec, runOfSlot(id, record, start));
    services.onStarted?.(owner, id, run);
    const started = { thread_id: run.thread_id, run_id: run.id, slot: start };
    return moved({ ...record, run: started }, done, { outcome: "started" });
  } catch (error) {
    // The run has ended, but the process that started it died before recording the start.
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

/** Returns the reason why the previous run has not ended, or undefined if it has. */
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
  // Another process can start it at once.
  if (hasCode(error, "shutting_down"))
    return again(record, { start, now, pause: 0, cause: "refused", message: error.message });
  if (!isRefusal(error)) throw error;
  if (error.code === "not_found") {
    const { since, attempts } = countOf(record, "missing", now);
    if (now - since < MISSING_MS)
      return again(record, {
        ...{ start, now, pause: backoff(attempts, PAUSE) },
        ...{ cause: "missing", message: error.message },
      });
  }
  if (!PASSING.includes(error.code)) return paused(record, "start_refused", error.message, now);
  const { since, attempts } = countOf(record, "refused", now);
  const pause = backoff(attempts, PAUSE);
  return now + pause < Math.min(since + RETRY_MS, giveWayAt(record.spec, start))
    ? again(record, { start, now, pause, cause: "refused", message: error.message })
    : moved(record, done, { outcome: "failed", message: error.message });
}

/**
 * Returns the time at which the next slot replaces a refused one. If the schedule starts every slot in sequence, a
 * refused slot is never replaced.
 */
function giveWayAt(spec: ScheduleSpec, start: number): number {
  if (spec.catch_up === "all" || spec.overlap === "queue") return Number.POSITIVE_INFINITY;
  return slotsAfter(spec, start, 1)[0] ?? Number.POSITIVE_INFINITY;
}

const isRefusal = (error: unknown): error is AppError =>
  error instanceof AppError && !OWN_FAILURES.includes(error.code);

interface Postponement extends Pick<PendingStart, "cause" | "message"> {
  readonly start: number;
  readonly now: number;
  readonly pause: number;
}

/** Keeps the slot and checks it again in `pause` milliseconds. */
function again(record: ScheduleRecord, { start, now, pause, cause, message }: Postponement): NextRecord {
  const { since, attempts } = countOf(record, cause, now);
  const retry = { cause, since, attempts: attempts + 1, message };
  return { record: { ...record, next: start, retry }, due: now + pause };
}

/**
 * Returns when the start was first postponed for this cause, and how often. The count starts over when the cause
 * changes, for example from waiting to a refusal.
 */
const countOf = ({ retry }: ScheduleRecord, cause: PendingStart["cause"], now: number) =>
  retry?.cause === cause ? retry : { since: now, attempts: 0 };

/** Marks the slot as done. */
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
