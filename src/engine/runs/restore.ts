// Restores a branch to its thread. A single run removes the rest of the thread and adds the branch's messages.

import { AppError } from "../../agent/core/errors.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import { isBranch } from "./branches.ts";
import { notFound } from "./control.ts";
import type { Runs } from "./executor.ts";
import { rewriteThread, sharedBeginning } from "./rewrite.ts";

export interface Restoration {
  readonly thread_id: string;
  readonly branch_id: string;
  readonly idempotency_key?: string | undefined;
}

/**
 * Starts a run that calls no model and costs no quota. The messages that the branch replaces become a new branch.
 * Throws `not_found`, `invalid_request` if the thread contains the whole branch, `thread_busy`, or `limit_exceeded`.
 */
export async function restoreBranch(
  runs: Runs,
  owner: Owner,
  { thread_id, branch_id, idempotency_key }: Restoration,
): Promise<RunRecord> {
  const { threads } = runs.stores;
  const [thread, branch] = await Promise.all([threads.get(owner, thread_id), threads.get(owner, branch_id)]);
  if (!thread) throw notFound("thread", thread_id);
  if (!branch || !isBranch(branch) || branch.parent?.thread_id !== thread_id)
    throw new AppError("not_found", `Thread \`${thread_id}\` has no branch \`${branch_id}\`.`);
  const ours = await threads.messages(owner, thread_id);
  const theirs = await threads.messages(owner, branch_id);
  const shared = await sharedBeginning(owner.tenant, ours, theirs);
  const input = theirs.slice(shared);
  if (input.length === 0)
    throw new AppError(
      "invalid_request",
      `Thread \`${thread_id}\` already contains all of branch \`${branch_id}\`.`,
    );
  return rewriteThread(runs, owner, thread, {
    ...{ input, restores: branch_id },
    ...omitUndefined({ replaces: ours[shared]?.id, idempotency_key }),
  });
}
