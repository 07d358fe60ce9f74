// The lines in which callers of this process wait before they ask PostgreSQL: for a connection, and for a lock that another of
// them has. Who waits for a lock has no connection meanwhile: however many changes wait for each other, the others find one free.
//
// A caller waits for as long as the line moves: PostgreSQL answers those before it. In a line there are as many as there are
// requests and runs at work, which are limited where they come in.

import { withTimeout } from "../shared/outages.ts";

/** Ends a turn. `isAnswered`: PostgreSQL has answered during it. */
export type Leave = (isAnswered: boolean) => void;

export class Line {
  readonly #atOnce: number;
  #inside = 0;
  /** In the order in which they came. */
  readonly #waiting = new Set<PromiseWithResolvers<void>>();
  #movedAt = Number.NEGATIVE_INFINITY;

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  get isEmpty(): boolean {
    return this.#inside === 0;
  }

  /** Waits for a turn, of which there are `atOnce`. Throws when none has been answered for `ms`. */
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
        // The turn may have come meanwhile.
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

/** A line for each lock. */
export class Locks {
  readonly #lines = new Map<string, Line>();

  /** As `Line.enter`, one at a time. */
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
