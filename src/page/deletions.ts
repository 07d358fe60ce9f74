// Threads that the user has deleted. The request is sent after ten seconds, so the user can undo the deletion. Closing
// the page cancels the deletion, so no thread is deleted before its Undo button has been visible.

import { touch } from "./frame.ts";
import { client, messageOf } from "./session.ts";
import { readThreads } from "./threads.ts";

export interface Deletion {
  readonly thread: string;
  readonly title: string;
  /** Why the server refused the deletion. */
  problem?: string;
}

/** The time to undo a deletion, in ms. */
const UNDO_MS = 10_000;

export const deletions: { items: readonly Deletion[] } = { items: [] };
const timers = new Map<string, ReturnType<typeof setTimeout>>();

/** Returns whether lists hide the thread. */
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

/** Cancels a deletion, or dismisses its error. */
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
