// The lists of threads in memory: each owner's threads by their most recent change, and the owners by name. Positions
// are found by binary search, so the cost of a page depends only on its length.

import type { Owner } from "../../../protocol/ids.ts";
import { isBefore } from "../owners.ts";
import type { Position } from "../page.ts";
import { ownerText } from "../row-keys.ts";
import type { ThreadEntry } from "./records.ts";

/** While a thread is in these lists, only `move` can set its `updatedAt`. */
export class ThreadLists {
  /** The lists by `ownerText`, for owners that have threads. */
  readonly #ofOwners = new Map<string, OwnList>();
  /** The same owners in byte order. */
  readonly #owners: string[] = [];

  add(thread: ThreadEntry): void {
    const owner = ownerText(thread.owner);
    const list = this.#ofOwners.get(owner) ?? new OwnList();
    if (list.isEmpty) {
      this.#ofOwners.set(owner, list);
      this.#owners.splice(this.#placeOf(owner), 0, owner);
    }
    list.add(thread);
  }

  remove(thread: ThreadEntry): void {
    const owner = ownerText(thread.owner);
    const list = this.#ofOwners.get(owner);
    list?.remove(thread);
    if (!list?.isEmpty) return;
    this.#ofOwners.delete(owner);
    this.#owners.splice(this.#placeOf(owner), 1);
  }

  move(thread: ThreadEntry, updatedAt: number): void {
    const list = this.#ofOwners.get(ownerText(thread.owner));
    list?.remove(thread);
    thread.updatedAt = updatedAt;
    list?.add(thread);
  }

  /** Returns the owner's threads, or only the threads below `parent`, oldest change first. */
  of(owner: Owner, parent: string | undefined): readonly ThreadEntry[] {
    return this.#ofOwners.get(ownerText(owner))?.of(parent) ?? [];
  }

  /** Returns up to `limit` owners as `ownerText`, in order, after `after` and before `before`. */
  ownersBetween(after: string, before: string, limit: number): string[] {
    const from = countBefore(this.#owners, (owner) => !isBefore(after, owner));
    return this.#owners.slice(from, from + limit).filter((owner) => isBefore(owner, before));
  }

  #placeOf(owner: string): number {
    return countBefore(this.#owners, (other) => isBefore(other, owner));
  }
}

/** The threads of one owner, oldest change first. */
class OwnList {
  readonly #all: ThreadEntry[] = [];
  /** The children of each thread. */
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

  of(parent: string | undefined): readonly ThreadEntry[] {
    return parent === undefined ? this.#all : (this.#below.get(parent) ?? []);
  }
}

/** Returns how many of `ordered` were changed before `place`. If times are equal, compares ids. */
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

/**
 * Returns how many items of a sorted list come before the position. `isBefore` must be true for the first items and
 * false for all others.
 */
function countBefore<T>(sorted: readonly T[], isBefore: (each: T) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    // There is at least one item between `low` and `high`.
    if (isBefore(sorted[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}
