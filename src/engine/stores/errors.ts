// The refusals that all stores share, with the same texts.

import { MAX_DEFERRED_CALLS } from "../../agent/core/deferred-calls.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { Lease } from "../../agent/core/stores.ts";

export function threadBusy(threadId: string, runId: string): AppError {
  return new AppError("thread_busy", `Thread \`${threadId}\` is busy with run \`${runId}\`.`, {
    details: { run_id: runId },
  });
}

export function threadExists(id: string): AppError {
  return new AppError("already_exists", `Thread \`${id}\` already exists.`);
}

export function runExists(id: string): AppError {
  return new AppError("already_exists", `Run \`${id}\` already exists.`);
}

export function queueFull(threadId: string, limit: number): AppError {
  return new AppError(
    "queue_full",
    `Thread \`${threadId}\` already has ${limit} waiting runs, which is the maximum.`,
    {
      details: { limit },
    },
  );
}

export function tenantFull(limit: number): AppError {
  return new AppError(
    "limit_exceeded",
    `Your tenant already has ${limit} threads with active or waiting runs, which is the maximum. Try again when some runs have ended.`,
    { details: { limit } },
  );
}

export function inboxFull(runId: string, limit: number): AppError {
  return new AppError(
    "queue_full",
    `Run \`${runId}\` already has ${limit} messages that it has not read, which is the maximum.`,
    {
      details: { limit },
    },
  );
}

export function leaseLost({ run_id, epoch }: Lease): AppError {
  return new AppError("lease_lost", `Attempt ${epoch} of run \`${run_id}\` no longer holds its lease.`);
}

export function tooManyDeferredCalls(threadId: string): AppError {
  return new AppError(
    "limit_exceeded",
    `Thread \`${threadId}\` already has ${MAX_DEFERRED_CALLS} calls that wait for their results, which is the maximum.`,
    { details: { limit: MAX_DEFERRED_CALLS } },
  );
}

export function noSuchThread(id: string): AppError {
  return new AppError("not_found", `There is no thread \`${id}\`.`);
}

export function noSuchRun(id: string): AppError {
  return new AppError("not_found", `There is no run \`${id}\`.`);
}

export function noSuchMessage(id: string): AppError {
  return new AppError("not_found", `There is no message \`${id}\` in this thread.`);
}

export function changedMeanwhile(threadId: string): AppError {
  return new AppError(
    "thread_busy",
    `Messages of thread \`${threadId}\` were deleted while it was being copied. Try again.`,
  );
}

/** The thread received a message after it was copied and before it was replaced. */
export function grownMeanwhile(threadId: string): AppError {
  return new AppError(
    "thread_busy",
    `Thread \`${threadId}\` received a message while its branch was being created. Try again.`,
  );
}

/** Refuses a run that would start again from this message. */
export function cannotRewind(id: string): AppError {
  return new AppError("invalid_request", `There is no message \`${id}\` in this thread to restart from.`);
}

export function eventsExpired(after: number): AppError {
  return new AppError(
    "events_expired",
    `Events after ${after} are not available: they are too old, or never existed. Read the thread's messages instead.`,
  );
}

export function fellBehind(limit: number): AppError {
  return new AppError(
    "events_expired",
    `The subscriber fell behind by more than ${limit} events, which were dropped. Reload and reconnect.`,
  );
}

export function storeClosed(): AppError {
  return new AppError("unavailable", "The store is closed.");
}
