// A clock that all processes read from a file: the store's own, which jumps.

import { readFileSync, renameSync, writeFileSync } from "node:fs";

const realNow = Date.now.bind(Date);

export interface MovableClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Sets it this much forward; back, if it is negative. */
  move(ms: number): void;
}

export function movableClock(file: string): MovableClock {
  const offset = () => Number(readFileSync(file, "utf8"));
  return {
    now: () => realNow() + offset(),
    move(ms) {
      // So that no process reads half of it.
      writeFileSync(`${file}.next`, String(offset() + ms));
      renameSync(`${file}.next`, file);
    },
  };
}

/** From now on this process believes that it is `ms` later. */
export function skewDate(ms: number): void {
  const Real = Date;
  globalThis.Date = class extends Real {
    constructor(...given: readonly unknown[]) {
      super(...((given.length === 0 ? [realNow() + ms] : given) as [number]));
    }
    static override now = () => realNow() + ms;
  } as DateConstructor;
}
