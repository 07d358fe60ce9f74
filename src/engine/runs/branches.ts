// Branches: the messages that a thread had before an edit, another answer or a restoration replaced them. A branch is a
// fork that lists of threads omit. It is created before the thread loses messages. While the thread still contains all
// of its messages, it does not count as a branch.

import { createHash } from "node:crypto";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import { bounded, FLOW_STATE, readByChildren, storedReadings } from "../../agent/core/flow.ts";
import type { Message } from "../../agent/core/message.ts";
import type { Thread } from "../../agent/core/records.ts";
import type { ThreadStore } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import { MAKING_MS, type Quotas } from "../quotas/index.ts";
import { recount } from "./thread-bytes.ts";

/** The maximum number of branches per thread. A new branch replaces the oldest one. */
export const MAX_BRANCHES = 16;

export interface BranchServices {
  readonly threads: ThreadStore;
  readonly quotas: Quotas | undefined;
}

/**
 * The parts of the state that a copy of a thread starts with. Open questions, subagents and permissions are not copied.
 */
const COPIED = ["todos", "files", "refused_files"];

export function copiedState(state: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copied = Object.fromEntries(Object.entries(state).filter(([key]) => COPIED.includes(key)));
  // The copy includes the readings of its subagents, even though the subagents are not copied.
  const slots = new Map(Object.entries(state));
  const read = bounded([...storedReadings(slots), ...readByChildren(slots)]);
  return read.length > 0 ? { ...copied, [FLOW_STATE]: read } : copied;
}

interface ThreadKey {
  readonly owner: Owner;
  readonly thread_id: string;
}

/** The message that is about to be replaced, and the run that replaces it. */
interface MessageReplacement extends ThreadKey {
  readonly replaced: string;
  readonly run_id: string;
  /** True if the run adds back the messages that follow. */
  readonly end_stays?: boolean;
}

/** Returns true if the thread is a branch of another one. */
export const isBranch = ({ parent }: Thread) => parent?.replaced !== undefined;

const BRANCH_ID = /^branch_[0-9a-f]{40}_\d+$/;

/**
 * Call this before a request creates a thread or starts a run on it. Branches must not change, because new messages
 * would be lost when the branch is discarded or its id is reused. Throws `invalid_request`.
 */
export function assertNoBranch(threadId: string): void {
  if (!BRANCH_ID.test(threadId)) return;
  const message = `\`${threadId}\` is the id of a branch, and branches cannot be changed. Restore the branch, or fork it and write to the fork.`;
  throw new AppError("invalid_request", message);
}

/** Branches have fixed ids, so they can be found without a search, and creating the same branch twice has no effect. */
function idsOf(threadId: string): string[] {
  const name = createHash("sha256").update(threadId).digest("hex").slice(0, 40);
  return Array.from({ length: MAX_BRANCHES }, (_, at) => `branch_${name}_${at}`);
}

/** Returns the copies stored under the thread's branch ids, oldest first. */
async function keptOf(threads: ThreadStore, { owner, thread_id }: ThreadKey): Promise<Thread[]> {
  const found = await Promise.all(idsOf(thread_id).map((id) => threads.get(owner, id)));
  return found
    .filter((each) => each !== undefined)
    .filter((each) => each.parent?.thread_id === thread_id)
    .sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
}

/** Returns the thread's branches, newest first. Each branch contains messages that the thread does not have. */
export async function branchesOf(threads: ThreadStore, place: ThreadKey): Promise<Thread[]> {
  const kept = await keptOf(threads, place);
  const held = await Promise.all(kept.map((branch) => heldIn(threads, place, branch)));
  return kept.filter((_, at) => held[at] === "not").reverse();
}

/**
 * How much of a branch the thread still contains. `not` means that a part is missing. `with more` means that
 * the thread contains all of the branch and later messages, and `end` means that the thread ends with the
 * branch.
 */
type BranchMatch = "not" | "with more" | "end";

async function heldIn(
  threads: ThreadStore,
  { owner, thread_id }: ThreadKey,
  branch: Thread,
): Promise<BranchMatch> {
  const last = branch.forked_from?.message_id;
  // The branch was created after another edit emptied the thread and before that edit's message was stored.
  if (last === undefined) return "with more";
  const isHeld = async (id: string) => {
    const [ours, theirs] = await Promise.all([
      threads.message(owner, thread_id, id),
      threads.message(owner, branch.id, id),
    ]);
    if (!ours || !theirs) return false;
    return isSame(ours, theirs);
  };
  // If a message was removed from the middle, the messages after it are still the same.
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
 * Keeps the current thread as a branch, unless an identical branch exists. Returns the id of its last message, after
 * which the thread may lose messages. Throws `limit_exceeded` if the quota has no room even after deleting the thread's
 * other branches. Throws `thread_busy` if the thread changes in the meantime.
 */
export async function keepBranch(
  services: BranchServices,
  replacement: MessageReplacement,
): Promise<string | undefined> {
  const { threads, quotas } = services;
  const { owner, thread_id, replaced, end_stays } = replacement;
  const kept = await keptOf(threads, replacement);
  const oldestFirst: Thread[] = [];
  for (const branch of kept) {
    const held = await heldIn(threads, replacement, branch);
    // If the end is kept, only a branch for the same message can be recognized later.
    const isKept = held === "end" && (!end_stays || branch.parent?.replaced === replaced);
    if (isKept) return branch.forked_from?.message_id;
    // The branch is left over from a crash or a restoration, and the thread contains all of it.
    if (held === "with more") await dropBranch(services, owner, branch);
    else oldestFirst.push(branch);
  }
  while (oldestFirst.length >= MAX_BRANCHES) await dropOldest();
  for (;;) {
    const taken = new Set(oldestFirst.map(({ id }) => id));
    const id = idsOf(thread_id).find((each) => !taken.has(each)) ?? "";
    try {
      const branch = await copyAs(id, services, replacement);
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

/** The copy counts towards `stored_bytes` but not as a thread, because no list shows it. */
async function copyAs(
  id: string,
  { threads, quotas }: BranchServices,
  { owner, thread_id, replaced, run_id }: MessageReplacement,
): Promise<Thread> {
  const measured = await threads.measured(owner, thread_id);
  await quotas?.setStored(owner, id, measured?.bytes ?? 0, MAKING_MS);
  const { agent, title } = measured?.thread ?? {};
  const parent = { thread_id, run_id, call_id: replaced, background: true, replaced };
  const state = copiedState(await threads.state(owner, thread_id));
  return threads
    .fork(owner, thread_id, { id, metadata: {}, parent, state, ...omitUndefined({ agent, title }) })
    .catch(async (error: unknown) => {
      // Another request is keeping the same branch. Removing messages later checks that the thread has not changed.
      const other = hasCode(error, "already_exists") ? await threads.get(owner, id) : undefined;
      if (other?.parent?.thread_id !== thread_id) throw error;
      return other;
    });
}

async function dropBranch({ threads, quotas }: BranchServices, owner: Owner, { id }: Thread): Promise<void> {
  const isDeleted = await threads.delete(owner, id);
  if (isDeleted) await quotas?.recordStored(owner, id, 0);
}

/** Returns the ids of all copies of the thread. */
export async function branchIds(threads: ThreadStore, place: ThreadKey): Promise<string[]> {
  return (await keptOf(threads, place)).map(({ id }) => id);
}
