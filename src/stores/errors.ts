// The refusals that every store makes, in the same words.

import { MAX_DEFERRED_CALLS } from "../core/deferred-calls.ts";
import { AppError } from "../core/errors.ts";
import type { Lease } from "../core/stores.ts";

export function threadBusy(threadId: string, runId: string): AppError {
  return new AppError("thread_busy", `Thread \`${threadId}\` is busy with run \`${runId}\`.`, {
    details: { run_id: runId },
  });
}

export function threadExists(id: string): AppError {
  return new AppError("already_exists", `There is a thread \`${id}\` already.`);
}

export function runExists(id: string): AppError {
  return new AppError("already_exists", `There is a run \`${id}\` already.`);
}

export function queueFull(threadId: string, limit: number): AppError {
  return new AppError("queue_full", `${limit} runs wait for thread \`${threadId}\` already.`, {
    details: { limit },
  });
}

export function tenantFull(limit: number): AppError {
  return new AppError(
    "limit_exceeded",
    `Runs are active or wait on ${limit} threads of your tenant already. Try again when some have ended.`,
    { details: { limit } },
  );
}

export function inboxFull(runId: string, limit: number): AppError {
  return new AppError("queue_full", `${limit} messages wait for run \`${runId}\` already.`, {
    details: { limit },
  });
}

export function leaseLost({ run_id, epoch }: Lease): AppError {
  return new AppError("lease_lost", `Attempt ${epoch} of run \`${run_id}\` no longer holds its lease.`);
}

export function tooManyDeferredCalls(threadId: string): AppError {
  return new AppError(
    "limit_exceeded",
    `${MAX_DEFERRED_CALLS} calls of thread \`${threadId}\` wait for their results already.`,
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
    `Messages of thread \`${threadId}\` were deleted while it was copied. Try again.`,
  );
}

/** Of a run that is to begin again from there. */
export function cannotRewind(id: string): AppError {
  return new AppError("invalid_request", `There is no message \`${id}\` in this thread to go back to.`);
}

export function eventsExpired(after: number): AppError {
  return new AppError(
    "events_expired",
    `The events after ${after} are not here: they are too old, or never were. Read the thread's messages instead.`,
  );
}

export function fellBehind(limit: number): AppError {
  return new AppError(
    "events_expired",
    `More than ${limit} events waited to be read; they are lost. Reload and reconnect.`,
  );
}

export function storeClosed(): AppError {
  return new AppError("unavailable", "The store is closed.");
}
