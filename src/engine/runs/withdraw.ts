// Withdraws a run that Skein started on its own while the run's user was being deleted.

import { hasCode } from "../../agent/core/errors.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import type { Owner } from "../../protocol/ids.ts";
import { settledRun, stopRun } from "./control.ts";
import type { Runs } from "./executor.ts";
import { deleteThreadTree } from "./thread-actions.ts";

/** The maximum time to wait for the cancelled run to end, in milliseconds. */
const END_MS = 5_000;

/** Cancels the run. Also deletes its thread, unless it has other runs. Throws `thread_busy` if the run does not end. */
export async function withdrawRun(
  runs: Runs,
  owner: Owner,
  run: Pick<RunRecord, "id" | "thread_id">,
): Promise<void> {
  const { stores, quotas } = runs;
  const { thread_id } = run;
  const key = { owner, thread_id, run_id: run.id };
  await stopRun(runs, key, "cancel").catch(ignoreEnded);
  await settledRun(runs, key, AbortSignal.timeout(END_MS)).catch(ignoreEnded);
  const { items } = await stores.runs.list(owner, thread_id, { limit: 2 });
  if (items.length !== 1 || items[0]?.id !== run.id) return;
  if (quotas) await deleteThreadTree({ threads: stores.threads, quotas }, owner, thread_id);
  else await stores.threads.delete(owner, thread_id);
}

function ignoreEnded(error: unknown): void {
  for (const code of ["run_not_active", "not_found", "events_expired"] as const)
    if (hasCode(error, code)) return;
  throw error;
}
