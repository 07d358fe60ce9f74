// Queues in which callers of this process wait before they use PostgreSQL: for a connection, and for a lock that
// another caller holds. A caller that waits for a lock uses no connection, so other callers can always get one.
//
// A caller waits for as long as the queue keeps moving, which means that PostgreSQL answers earlier callers. The length
// of a queue is limited by the number of requests and runs, which have limits of their own.

import { withTimeout } from "../shared/outages.ts";

/** Ends a turn. `isAnswered` is true if PostgreSQL answered during the turn. */
export type Leave = (isAnswered: boolean) => void;

export class Line {
  readonly #atOnce: number;
  #inside = 0;
  /** The waiting callers, in order of arrival. */
  readonly #waiting = new Set<PromiseWithResolvers<void>>();
  #movedAt = Number.NEGATIVE_INFINITY;

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  get isEmpty(): boolean {
    return this.#inside === 0;
  }

  /** Waits for one of the `atOnce` turns. Throws if PostgreSQL has not answered in any turn for `ms` milliseconds. */
  async enter(ms: number): Promise<Leave> {
    if (this.#inside < this.#atOnce) this.#inside++;
    else await this.#turn(ms);
    return (isAnswered) => this.#leave(isAnswered);
  }

  async #turn(ms: number): Promise<void> {
    const turn = Promise.withResolvers<void>();
    this.#waiting.add(turn);
    for (let left = ms; ; ) {
      try {
        return await withTimeout(left, turn.promise);
      } catch (error) {
        left = this.#movedAt + ms - performance.now();
        if (left > 0) continue;
        // The turn may have come in the meantime.
        if (!this.#waiting.delete(turn)) return;
        throw error;
      }
    }
  }

  #leave(isAnswered: boolean): void {
    if (isAnswered) this.#movedAt = performance.now();
    const [next] = this.#waiting;
    if (!next) {
      this.#inside--;
      return;
    }
    this.#waiting.delete(next);
    next.resolve();
  }
}

/** One queue per lock. */
export class Locks {
  readonly #lines = new Map<string, Line>();

  /** Like `Line.enter`, but with one caller at a time. */
  async enter(lock: string, ms: number): Promise<Leave> {
    const line = this.#lines.get(lock) ?? new Line(1);
    this.#lines.set(lock, line);
    const leave = await line.enter(ms);
    return (isAnswered) => {
      leave(isAnswered);
      if (line.isEmpty) this.#lines.delete(lock);
    };
  }
}
