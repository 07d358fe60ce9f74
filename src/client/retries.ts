// Decides what to do after a failed attempt: pause and retry, or throw an error. Reports the state of the connection.

import { ConnectionLost, ProblemError } from "./connection.ts";

const FIRST_PAUSE_MS = 100;
/** The longest rate limit to wait for. A longer one, for example a daily budget, is thrown as an error. */
const LONGEST_LIMIT_MS = 60_000;
/** The longest delay that `setTimeout` supports, about 24 days. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

export type ConnectionState = "live" | "reconnecting";

export interface RetryOptions {
  readonly longestPauseMs: number;
  readonly onRetry: ((reason: Error, attempt: number, delayMs: number) => void) | undefined;
  readonly onConnection: ((state: ConnectionState) => void) | undefined;
  /** True if expired credentials are worth a retry, because a function provides new ones. */
  readonly isRenewed: boolean;
}

/** The attempts of one request or stream. */
export interface Retries {
  /** Call this when the server responds. */
  reached(): void;
  /** Call this when an attempt makes progress. The next failure then counts as the first one. */
  moved(): void;
  /**
   * Pauses before the next attempt. Throws `error` if a retry cannot help, or the reason of the signal if it aborts.
   */
  failed(error: unknown): Promise<void>;
  /** Call this after the last attempt. */
  ended(): void;
}

export type RetriesFor = ReturnType<typeof createRetries>;

export function createRetries({ longestPauseMs, onRetry, onConnection, isRenewed }: RetryOptions) {
  const states = new Map<symbol, ConnectionState>();
  let told: ConnectionState | undefined;
  const tell = () => {
    if (states.size === 0) return;
    const state = [...states.values()].includes("reconnecting") ? "reconnecting" : "live";
    if (state === told) return;
    told = state;
    onConnection?.(state);
  };

  /** Calls `onState` each time the state of these attempts changes. */
  return (signal?: AbortSignal, onState?: (state: ConnectionState) => void): Retries => {
    const id = Symbol("attempts");
    let attempt = 1;
    const is = (state: ConnectionState) => {
      if (states.get(id) !== state) onState?.(state);
      states.set(id, state);
      tell();
    };
    return {
      reached: () => is("live"),
      moved() {
        attempt = 1;
      },
      async failed(error) {
        signal?.throwIfAborted();
        if (!isTransient(error) && !(isRenewed && hasExpired(error))) throw error;
        is("reconnecting");
        const delayMs = delayAfter(error, attempt, longestPauseMs);
        onRetry?.(error, attempt, delayMs);
        attempt++;
        await pause(delayMs, signal);
      },
      ended() {
        states.delete(id);
        tell();
      },
    };
  };
}

const hasExpired = (error: unknown): error is ProblemError =>
  error instanceof ProblemError && error.code === "credentials_expired";

const UNAVAILABLE: readonly number[] = [502, 503, 504];

/** Returns true if a retry may succeed: after a network error, a server restart, or a rate limit that ends soon. */
function isTransient(error: unknown): error is Error {
  if (error instanceof ConnectionLost) return true;
  if (!(error instanceof ProblemError)) return false;
  return error.status === 429
    ? (error.retryAfterMs ?? 0) <= LONGEST_LIMIT_MS
    : UNAVAILABLE.includes(error.status);
}

/** Exponential backoff with full jitter, so the clients of one server do not all reconnect at the same moment. */
function delayAfter(reason: Error, attempt: number, longest: number): number {
  const asked = reason instanceof ProblemError ? (reason.retryAfterMs ?? 0) : 0;
  const jitter = Math.random() * Math.min(longest, FIRST_PAUSE_MS * 2 ** (attempt - 1));
  return Math.min(asked + jitter, LONGEST_TIMER_MS);
}

/** Waits `ms` milliseconds. Throws the reason of `signal` when it aborts. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  let end = () => {};
  const aborted = new Promise<never>((_, reject) => {
    end = () => reject(signal?.reason);
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  signal?.addEventListener("abort", end, { once: true });
  try {
    await Promise.race([aborted, new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}
