// Whether one more run may be started, as far as quotas go. From then on it counts, until it has ended.

import type { Owner } from "../core/ids.ts";
import type { NewRun, StartResult, ThreadStore } from "../core/stores.ts";
import { admitted, holdThread } from "../quotas/holds.ts";
import type { Quotas } from "../quotas/index.ts";

/** Throws `limit_exceeded`, and what `start` throws. A run that is not made does not count. */
export async function admit<R extends StartResult>(
  quotas: Quotas,
  { owner, run, threads }: { owner: Owner; run: NewRun; threads: ThreadStore },
  start: () => Promise<R>,
): Promise<R> {
  await quotas.assertFunds(owner);
  const result = await admitted(quotas, { owner, thing: "runs", id: run.id }, async () => {
    const exists = async () => (await threads.get(owner, run.thread_id)) !== undefined;
    await holdThread(quotas, owner, { id: run.thread_id, exists });
    return start();
  });
  // Where that fails, its time will be over.
  if (result.outcome === "known") await quotas.release(owner, "runs", run.id).catch(() => {});
  return result;
}
