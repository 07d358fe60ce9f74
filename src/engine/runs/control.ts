// Reads, stops and steers runs, and waits for their end.

import { AppError } from "../../agent/core/errors.ts";
import type { UserMessage } from "../../agent/core/message.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import type { RunKey, StopMode, Stores } from "../../agent/core/stores.ts";
import { doneEvent } from "../../protocol/end.ts";
import type { Owner } from "../../protocol/ids.ts";
import { publishEnd } from "./drive.ts";
import type { Runs } from "./executor.ts";
import { bytesWith } from "./thread-bytes.ts";

export const keyOf = (owner: Owner, { id: run_id, thread_id }: RunRecord): RunKey => ({
  owner,
  thread_id,
  run_id,
});

export function notFound(what: "thread" | "run", id: string): AppError {
  return new AppError("not_found", `There is no ${what} \`${id}\`.`);
}

type WithStores = { readonly stores: Pick<Stores, "runs" | "events"> };

export async function newestRun(
  runs: Pick<Stores["runs"], "list">,
  owner: Owner,
  threadId: string,
): Promise<RunRecord | undefined> {
  const { items } = await runs.list(owner, threadId, { limit: 1 });
  return items[0];
}

/** Returns a run. Throws `not_found`. */
export async function getRun(
  { stores }: WithStores,
  { owner, thread_id, run_id }: RunKey,
): Promise<RunRecord> {
  const run = await stores.runs.get(owner, thread_id, run_id);
  if (!run) throw notFound("run", run_id);
  return run;
}

/** Ends a run now (`cancel`) or after its current step (`interrupt`). Throws `not_found` or `run_not_active`. */
export async function stopRun(runs: Runs, key: RunKey, mode: StopMode): Promise<RunRecord> {
  const { owner, thread_id, run_id } = key;
  const before = await getRun(runs, key);
  if (isSettled(before.status))
    throw new AppError("run_not_active", `Run \`${run_id}\` has ended (${before.status}).`);
  const ring = before.status === "pending" ? await prepareCancelled(runs, owner, before) : undefined;
  const run = await runs.stores.runs.requestStop(owner, thread_id, run_id, mode);
  // A queued run ends with this request, so no executor will publish its end or release its quota.
  if (before.status === "pending" && run?.status === "cancelled") {
    publishEnd(runs.stores.bus, owner, run, "cancelled");
    ring?.();
    await runs.quotas?.release(owner, "runs", run_id).catch(() => {});
  }
  runs.executor.stop(run_id, mode);
  return run ?? before;
}

/** Prepares the end of a run that the store cancels before it begins. Runs of subagents are never queued. */
async function prepareCancelled(
  { beforeEnd }: Runs,
  owner: Owner,
  run: RunRecord,
): Promise<(() => void) | undefined> {
  const end = doneEvent({ status: "cancelled", stop_reason: "cancelled", usage: run.usage });
  return beforeEnd?.({ owner, run, end, interrupts: [], isChild: false });
}

/** Resolves with the run after it ends, or with its current state when `signal` aborts. */
export async function settledRun(runs: WithStores, key: RunKey, signal: AbortSignal): Promise<RunRecord> {
  const { events } = runs.stores;
  const { last } = await events.bounds(key);
  for await (const _ of events.read(key, last, signal));
  return getRun(runs, key);
}

/** Adds a message to a run in progress. Throws `not_found`, `run_not_active`, `queue_full` or `limit_exceeded`. */
export async function steerRun(
  runs: Pick<Runs, "stores" | "threadBytes">,
  key: RunKey,
  message: UserMessage,
): Promise<void> {
  const { owner, thread_id, run_id } = key;
  const run = await getRun(runs, key);
  const before = await runs.stores.threads.bytes(owner, thread_id);
  await bytesWith(before, key, [message], runs.threadBytes);
  if (await runs.stores.runs.steer(owner, thread_id, run_id, message)) return;
  throw new AppError(
    "run_not_active",
    `Run \`${run_id}\` is not running (${run.status}). Start a new run instead.`,
  );
}
