// Threads that a person has deleted here. For ten seconds the deletion can be undone, and nothing is sent to the server. A page
// that is closed meanwhile deletes nothing: no thread is lost where its Undo was never seen.

import { touch } from "./frame.ts";
import { client, messageOf } from "./session.ts";
import { readThreads } from "./threads.ts";

export interface Deletion {
  readonly thread: string;
  readonly title: string;
  /** Why the server has refused it. */
  problem?: string;
}

/** How long a deletion waits, in ms. */
const UNDO_MS = 10_000;

export const deletions: { items: readonly Deletion[] } = { items: [] };
const timers = new Map<string, ReturnType<typeof setTimeout>>();

/** Whether the lists leave the thread out. */
export const isDeleted = (thread: string): boolean =>
  deletions.items.some((each) => each.thread === thread && each.problem === undefined);

export function deleteSoon(deletion: Deletion): void {
  forgetDeletion(deletion.thread);
  deletions.items = [...deletions.items, deletion];
  timers.set(
    deletion.thread,
    setTimeout(() => void deleteNow(deletion), UNDO_MS),
  );
  touch(deletions);
}

/** Undoes it, or takes away the problem that it had. */
export function forgetDeletion(thread: string): void {
  clearTimeout(timers.get(thread));
  timers.delete(thread);
  deletions.items = deletions.items.filter((each) => each.thread !== thread);
  touch(deletions);
}

async function deleteNow(deletion: Deletion): Promise<void> {
  timers.delete(deletion.thread);
  try {
    await client.threads.delete(deletion.thread);
    readThreads();
    forgetDeletion(deletion.thread);
  } catch (error) {
    deletion.problem = messageOf(error);
    touch(deletions);
  }
}
