// Branches: what a thread held before an edit, another answer or a restoration took its place. Each is a fork of the thread that no list
// of threads shows. It is made before the thread loses anything; as long as the thread still holds all of it, it is no branch yet.

import { createHash } from "node:crypto";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import type { Message } from "../../agent/core/message.ts";
import type { Thread } from "../../agent/core/records.ts";
import type { ThreadStore } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import { MAKING_MS, type Quotas } from "../quotas/index.ts";
import { recount } from "./thread-bytes.ts";

/** Maximum number of branches of a thread: the oldest one makes room for the next. */
export const MAX_BRANCHES = 16;

export interface BranchServices {
  readonly threads: ThreadStore;
  readonly quotas: Quotas | undefined;
}

/** State that a copy of a thread begins with. Open questions, subagents and permissions stay with the original. */
const COPIED = ["todos", "files", "refused_files"];

export const copiedState = (state: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(state).filter(([key]) => COPIED.includes(key)));

interface ThreadKey {
  readonly owner: Owner;
  readonly thread_id: string;
}

/** The message that is about to be replaced, and the run that replaces it. */
interface Replacing extends ThreadKey {
  readonly replaced: string;
  readonly run_id: string;
  /** The run puts back what follows the message. */
  readonly end_stays?: boolean;
}

/** Whether the thread is a branch of another one. */
export const isBranch = ({ parent }: Thread) => parent?.replaced !== undefined;

const BRANCH_ID = /^branch_[0-9a-f]{40}_\d+$/;

/**
 * To be called before a request creates a thread or runs on it. A branch stays as it was: what is written in it would be lost when its
 * thread holds what it was made of, or needs its id. Throws `invalid_request`.
 */
export function assertNoBranch(threadId: string): void {
  if (!BRANCH_ID.test(threadId)) return;
  const message = `\`${threadId}\` is the id of a branch, which stays as it was. Restore the branch, or fork it and write to the fork.`;
  throw new AppError("invalid_request", message);
}

/** A thread's branches have fixed ids: to find them costs no search, and to make one twice makes one. */
function idsOf(threadId: string): string[] {
  const name = createHash("sha256").update(threadId).digest("hex").slice(0, 40);
  return Array.from({ length: MAX_BRANCHES }, (_, at) => `branch_${name}_${at}`);
}

/** The copies at the ids of the thread's branches, oldest first. */
async function keptOf(threads: ThreadStore, { owner, thread_id }: ThreadKey): Promise<Thread[]> {
  const found = await Promise.all(idsOf(thread_id).map((id) => threads.get(owner, id)));
  return found
    .filter((each) => each !== undefined)
    .filter((each) => each.parent?.thread_id === thread_id)
    .sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
}

/** The thread's branches, newest first: each holds messages that the thread does not. */
export async function branchesOf(threads: ThreadStore, place: ThreadKey): Promise<Thread[]> {
  const kept = await keptOf(threads, place);
  const held = await Promise.all(kept.map((branch) => heldIn(threads, place, branch)));
  return kept.filter((_, at) => held[at] === "not").reverse();
}

/** Which of a branch the thread still holds: `not` all of it, all of it `with more`, or exactly it, as its `end`. */
type BranchMatch = "not" | "with more" | "end";

async function heldIn(
  threads: ThreadStore,
  { owner, thread_id }: ThreadKey,
  branch: Thread,
): Promise<BranchMatch> {
  const last = branch.forked_from?.message_id;
  // Made after another edit had emptied the thread, and before that one's message was in it.
  if (last === undefined) return "with more";
  const isHeld = async (id: string) => {
    const [ours, theirs] = await Promise.all([
      threads.message(owner, thread_id, id),
      threads.message(owner, branch.id, id),
    ]);
    if (!ours || !theirs) return false;
    return isSame(ours, theirs);
  };
  // A message may be taken out of the middle: what follows it is then the same.
  const held = await Promise.all([last, branch.parent?.replaced ?? last].map(isHeld));
  if (!held.every(Boolean)) return "not";
  try {
    const { texts } = await threads.messagePage(owner, thread_id, { after: last, limit: 1, bytes: 1 });
    return texts.length > 0 ? "with more" : "end";
  } catch (error) {
    if (hasCode(error, "not_found")) return "not";
    throw error;
  }
}

/** A client may send another message under the same id. */
export const isSame = (a: Message, b: Message) => JSON.stringify(a) === JSON.stringify(b);

/**
 * Keeps the thread as it is as a branch, unless one is exactly so already. Returns the id of its last message, after which the
 * thread may lose messages. Throws `limit_exceeded` when the quota has no room for it without the thread's other branches,
 * `thread_busy` when the thread changes meanwhile.
 */
export async function keepBranch(
  services: BranchServices,
  replacing: Replacing,
): Promise<string | undefined> {
  const { threads, quotas } = services;
  const { owner, thread_id, replaced, end_stays } = replacing;
  const kept = await keptOf(threads, replacing);
  const oldestFirst: Thread[] = [];
  for (const branch of kept) {
    const held = await heldIn(threads, replacing, branch);
    // Where the end stays, only a branch for the same message shows later that it is one.
    const isKept = held === "end" && (!end_stays || branch.parent?.replaced === replaced);
    if (isKept) return branch.forked_from?.message_id;
    // Left by a crash or a restoration: the thread holds all of it.
    if (held === "with more") await dropBranch(services, owner, branch);
    else oldestFirst.push(branch);
  }
  while (oldestFirst.length >= MAX_BRANCHES) await dropOldest();
  for (;;) {
    const taken = new Set(oldestFirst.map(({ id }) => id));
    const id = idsOf(thread_id).find((each) => !taken.has(each)) ?? "";
    try {
      const branch = await copyAs(id, services, replacing);
      return branch.forked_from?.message_id;
    } catch (error) {
      if (!hasCode(error, "limit_exceeded") || oldestFirst.length === 0) throw error;
      await dropOldest();
    } finally {
      if (quotas) await recount({ threads, quotas }, { owner, thread_id: id });
    }
  }

  async function dropOldest() {
    const oldest = oldestFirst.shift();
    if (oldest) await dropBranch(services, owner, oldest);
  }
}

/** Counts for `stored_bytes`, and not as a thread: no list shows it. */
async function copyAs(
  id: string,
  { threads, quotas }: BranchServices,
  { owner, thread_id, replaced, run_id }: Replacing,
): Promise<Thread> {
  const measured = await threads.measured(owner, thread_id);
  await quotas?.setStored(owner, id, measured?.bytes ?? 0, MAKING_MS);
  const { agent, title } = measured?.thread ?? {};
  const parent = { thread_id, run_id, call_id: replaced, background: true, replaced };
  const state = copiedState(await threads.state(owner, thread_id));
  return threads
    .fork(owner, thread_id, { id, metadata: {}, parent, state, ...omitUndefined({ agent, title }) })
    .catch(async (error: unknown) => {
      // Another request keeps the same one: that the thread has not changed since is checked when it loses something.
      const other = hasCode(error, "already_exists") ? await threads.get(owner, id) : undefined;
      if (other?.parent?.thread_id !== thread_id) throw error;
      return other;
    });
}

async function dropBranch({ threads, quotas }: BranchServices, owner: Owner, { id }: Thread): Promise<void> {
  const isDeleted = await threads.delete(owner, id);
  if (isDeleted) await quotas?.recordStored(owner, id, 0);
}

/** The ids of every copy that is kept of the thread. */
export async function branchIds(threads: ThreadStore, place: ThreadKey): Promise<string[]> {
  return (await keptOf(threads, place)).map(({ id }) => id);
}
