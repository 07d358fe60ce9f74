// The threads of one owner in the order of their newest change, as lists show them.

import { countBefore } from "../../lib/sorted.ts";
import type { Position } from "../page.ts";
import type { ThreadEntry } from "./records.ts";

/** While a thread is in here, only `move` sets its `updatedAt`. */
export class ChangeOrder {
  readonly #all: ThreadEntry[] = [];
  /** Those below each thread. */
  readonly #below = new Map<string, ThreadEntry[]>();

  get isEmpty(): boolean {
    return this.#all.length === 0;
  }

  add(thread: ThreadEntry): void {
    insert(this.#all, thread);
    if (!thread.parent) return;
    const siblings = this.#below.get(thread.parent.thread_id);
    if (siblings) insert(siblings, thread);
    else this.#below.set(thread.parent.thread_id, [thread]);
  }

  remove(thread: ThreadEntry): void {
    take(this.#all, thread);
    if (!thread.parent) return;
    const siblings = this.#below.get(thread.parent.thread_id) ?? [];
    take(siblings, thread);
    if (siblings.length === 0) this.#below.delete(thread.parent.thread_id);
  }

  move(thread: ThreadEntry, updatedAt: number): void {
    this.remove(thread);
    thread.updatedAt = updatedAt;
    this.add(thread);
  }

  /** All, or those below the thread `parent`; oldest change first. */
  of(parent: string | undefined): readonly ThreadEntry[] {
    return parent === undefined ? this.#all : (this.#below.get(parent) ?? []);
  }
}

/** How many of `ordered` were changed before `place`. The id settles equal times. */
export function changedBefore(ordered: readonly ThreadEntry[], { updatedAt, id }: Position): number {
  return countBefore(
    ordered,
    (thread) => thread.updatedAt < updatedAt || (thread.updatedAt === updatedAt && thread.id < id),
  );
}

function insert(ordered: ThreadEntry[], thread: ThreadEntry): void {
  ordered.splice(changedBefore(ordered, thread), 0, thread);
}

function take(ordered: ThreadEntry[], thread: ThreadEntry): void {
  const at = changedBefore(ordered, thread);
  if (ordered[at] === thread) ordered.splice(at, 1);
}
