// Computes how long to wait before the next attempt.

export interface BackoffOptions {
  /** The number of milliseconds to wait before attempt 0. The wait doubles with each attempt. */
  readonly base: number;
  /** The maximum wait in milliseconds. */
  readonly cap?: number;
  /** A random fraction of the wait (0–1), so clients that failed together do not retry together. */
  readonly jitter?: number;
}

/** Returns the milliseconds to wait after the failed attempt `attempt`, counted from 0. */
export function backoff(attempt: number, { base, cap = Infinity, jitter = 0 }: BackoffOptions): number {
  return Math.min(cap, base * 2 ** attempt) * (1 - jitter * Math.random());
}
