// When a worker that ended is started again, and when the primary gives up.

/** A worker that lived for so long, in ms, counts as one that worked. */
const LONG_LIFE = 60_000;
const FIRST_DELAY = 500;
const LONGEST_DELAY = 30_000;
/** Starts in a row that may fail while no worker serves. */
const MOST_FAILURES = 5;

/** How many short lives follow each other in a place, with one of `livedMs` after `before` others. */
export const shortLives = (before: number, livedMs: number): number => (livedMs < LONG_LIFE ? before + 1 : 0);

/** In ms, after so many short lives. */
export const delayAfter = (lives: number): number =>
  lives === 0 ? 0 : Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** (lives - 1));

export interface Starts {
  /** Whether the server has not served with all its workers yet. */
  readonly isFirst: boolean;
  /** That failed since one succeeded. */
  readonly failed: number;
  /** Workers that serve now. */
  readonly serving: number;
}

/** While others serve, starts may fail for as long as it takes: what they need may be away for a time. */
export const givesUp = ({ isFirst, failed, serving }: Starts): boolean =>
  failed > 0 && (isFirst || (serving === 0 && failed >= MOST_FAILURES));
