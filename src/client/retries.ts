// What happens after a failed attempt: a pause and another one, or the end. And what that says about the connection.

import { ConnectionLost, ProblemError } from "./connection.ts";

const FIRST_PAUSE_MS = 100;
/** A rate limit that ends within this time is waited for; a longer one (a daily budget) is thrown. */
const LONGEST_LIMIT_MS = 60_000;
/** The longest delay of `setTimeout`, 24 days. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

export type ConnectionState = "live" | "reconnecting";

export interface RetryOptions {
  readonly longestPauseMs: number;
  readonly onRetry: ((reason: Error, attempt: number, delayMs: number) => void) | undefined;
  readonly onConnection: ((state: ConnectionState) => void) | undefined;
  /** Whether expired credentials are worth another attempt. */
  readonly isRenewed: boolean;
}

/** The attempts at one thing. */
export interface Retries {
  /** The server responds. */
  reached(): void;
  /** Something came of it: the next failure is a first one. */
  moved(): void;
  /** Pauses. Throws `error` when another attempt cannot help, and the reason of the signal. */
  failed(error: unknown): Promise<void>;
  /** No more attempts. */
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

  /** `onState` is called with each change of these attempts alone. */
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

/** Whether a retry may succeed: a network error, a restarting server, or a rate limit that ends soon. */
function isTransient(error: unknown): error is Error {
  if (error instanceof ConnectionLost) return true;
  if (!(error instanceof ProblemError)) return false;
  return error.status === 429
    ? (error.retryAfterMs ?? 0) <= LONGEST_LIMIT_MS
    : UNAVAILABLE.includes(error.status);
}

/** Exponential backoff with full jitter, so that clients of one server do not return at the same moment. */
function delayAfter(reason: Error, attempt: number, longest: number): number {
  const asked = reason instanceof ProblemError ? (reason.retryAfterMs ?? 0) : 0;
  const jitter = Math.random() * Math.min(longest, FIRST_PAUSE_MS * 2 ** (attempt - 1));
  return Math.min(asked + jitter, LONGEST_TIMER_MS);
}

/** Throws the reason of `signal` when it aborts. */
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
