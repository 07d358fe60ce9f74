// The due times of documents, earliest first, as a binary heap. If a document was rewritten or deleted, its outdated
// time is skipped when it is reached.

import type { OwnedCollection } from "../../../agent/core/documents.ts";

export interface DueTime {
  readonly due: number;
  readonly key: string;
  readonly collection: OwnedCollection;
}

/** The heap is cleaned when it has this many more outdated times than valid ones. */
const SLACK = 64;

export class DueTimes {
  #heap: DueTime[] = [];
  #most = SLACK;
  readonly #documentOf: (time: DueTime) => object | undefined;

  /** `documentOf` returns the document of a time, or undefined if the time is outdated. */
  constructor(documentOf: (time: DueTime) => object | undefined) {
    this.#documentOf = documentOf;
  }

  add(time: DueTime): void {
    if (this.#heap.length >= this.#most) this.#forgetOld();
    this.#push(time);
  }

  /** Returns the earliest valid time without removing it. */
  first(): DueTime | undefined {
    for (let [time] = this.#heap; time; [time] = this.#heap) {
      if (this.#documentOf(time)) return time;
      this.drop();
    }
    return undefined;
  }

  /** Returns all valid times after `time`, in no particular order, without removing them. */
  after(time: number): DueTime[] {
    return this.#heap.filter((each) => each.due > time && this.#documentOf(each));
  }

  #forgetOld(): void {
    const held = new Map(this.#heap.map((time) => [this.#documentOf(time), time]));
    held.delete(undefined);
    this.#heap = [];
    for (const time of held.values()) this.#push(time);
    this.#most = 2 * held.size + SLACK;
  }

  #push(time: DueTime): void {
    const heap = this.#heap;
    let at = heap.length;
    for (let parent = (at - 1) >> 1; at > 0; parent = (at - 1) >> 1) {
      const above = heap[parent] as DueTime;
      if (isBefore(above, time)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = time;
  }

  /** Removes the earliest time. */
  drop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]];
      const isRight = left !== undefined && right !== undefined && isBefore(right, left);
      const below = isRight ? right : left;
      if (!below || isBefore(last, below)) break;
      heap[at] = below;
      at = 2 * at + (isRight ? 2 : 1);
    }
    heap[at] = last;
  }
}

/** Documents that are due at the same time are sorted by key. */
const isBefore = (a: DueTime, b: DueTime) => a.due < b.due || (a.due === b.due && a.key < b.key);
