// How long to wait before the next attempt.

export interface BackoffOptions {
  /** The wait before attempt 0, in ms; it doubles with each attempt. */
  readonly base: number;
  /** The longest wait, in ms. */
  readonly cap?: number;
  /** The random share of the wait, 0 to 1, so that clients that failed together do not retry together. */
  readonly jitter?: number;
}

/** The wait in ms after the failed attempt `attempt`, counted from 0. */
export function backoff(attempt: number, { base, cap = Infinity, jitter = 0 }: BackoffOptions): number {
  return Math.min(cap, base * 2 ** attempt) * (1 - jitter * Math.random());
}
