// The client that front ends import: starts runs and follows them through lost connections. Needs `fetch`.

import type { StreamEvent } from "../core/event.ts";
import type { Answer, Interrupt } from "../core/interrupt.ts";
import type { RunRecord } from "../core/records.ts";
import { type Connection, ConnectionLost, connect, ProblemError } from "./connection.ts";
import { frames } from "./frames.ts";

export type { StreamEvent } from "../core/event.ts";
export type { Answer, Interrupt } from "../core/interrupt.ts";
export type { Message } from "../core/message.ts";
export type { RunRecord, Thread } from "../core/records.ts";
export { ConnectionLost, ProblemError } from "./connection.ts";

const FIRST_PAUSE_MS = 100;
/** A limit that is over within this time is waited for; one that is not (a budget of the day) is the user's business. */
const LONGEST_LIMIT_MS = 60_000;
/** Timers take no more than 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface ClientOptions {
  readonly baseUrl: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: typeof fetch;
  /**
   * How long the server may send nothing before its connection counts as lost, in ms; default 25,000. Longer than the
   * pause between the server's heartbeats, which is ten seconds unless its operator has changed that.
   */
  readonly silenceMs?: number;
  /** The longest pause between two attempts, in ms, unless the server asks for a longer one; default 10,000. */
  readonly longestPauseMs?: number;
  /** Called before each pause. `attempt` counts from 1 and starts again once an event has come. */
  readonly onRetry?: (reason: Error, attempt: number, delayMs: number) => void;
}

/** As `POST /threads/:id/runs` takes it. */
export interface RunOptions {
  readonly input?: string;
  readonly messages?: readonly { role: "user" | "system"; content: string }[];
  readonly agent?: string;
  readonly model?: string;
  readonly on_busy?: "reject" | "enqueue" | "interrupt";
}

/** Throws `TypeError` for a `baseUrl` or headers that no request can have, `RangeError` for a time out of range. */
export function createClient(options: ClientOptions) {
  const { fetch: send = fetch, silenceMs = 25_000, longestPauseMs = 10_000, onRetry } = options;
  const base = options.baseUrl.replace(/\/+$/, "");
  assertUsable(base, options);

  const request = (path: string, init: RequestInit, signal?: AbortSignal) => {
    const headers = { ...options.headers, ...(init.headers as Record<string, string> | undefined) };
    return connect({ fetch: send, silenceMs }, base + path, { ...init, headers }, signal);
  };

  /** A request that starts a run is repeated, with the same key, until it was answered; then the run is followed. */
  async function* follow(
    path: string,
    body: unknown,
    signal?: AbortSignal,
  ): AsyncGenerator<StreamEvent, void, void> {
    const start = posted(body, { "idempotency-key": crypto.randomUUID() });
    let cursor: string | undefined;
    let events = path;
    for (let attempt = 1; ; attempt++) {
      let reason: Error = new ConnectionLost("The stream ended before the run did.");
      try {
        const connection = await (cursor === undefined
          ? request(path, start, signal)
          : request(events, { headers: { "last-event-id": cursor } }, signal));
        if (connection.status === 204) return;
        events = connection.headers.get("location") ?? events;
        assertEvents(connection);
        for await (const { id, data } of frames(connection.chunks())) {
          if (id === undefined) continue;
          const event = JSON.parse(data) as StreamEvent;
          cursor = id;
          attempt = 1;
          yield event;
          if (event.event === "done" || event.event === "error") return;
        }
      } catch (error) {
        if (!isPassing(error)) throw error;
        reason = error;
      }
      const delayMs = delayAfter(reason, attempt, longestPauseMs);
      onRetry?.(reason, attempt, delayMs);
      await pause(delayMs, signal);
    }
  }

  return {
    /**
     * Starts a run and yields its events to the last. A lost connection is resumed at the event where it broke: no
     * event is missed, none comes twice, and no second run is started. It tries for as long as it takes the server to
     * come back; aborting `signal` ends that, and stops following, not the run. Throws `ProblemError` for what the
     * server refuses.
     */
    run(threadId: string, run: RunOptions, signal?: AbortSignal): AsyncGenerator<StreamEvent, void, void> {
      return follow(pathOf(threadId), run, signal);
    },

    /**
     * Answers what an interrupted run asked, and yields the events of the run that goes on. As `run` otherwise. Throws
     * `interrupt_closed` for what somebody else has answered.
     */
    resume(
      threadId: string,
      runId: string,
      answers: readonly Answer[],
      signal?: AbortSignal,
    ): AsyncGenerator<StreamEvent, void, void> {
      return follow(`${pathOf(threadId)}/${encodeURIComponent(runId)}/resume`, { answers }, signal);
    },

    /** What waits for an answer on a thread; nothing on one that there is not. */
    async interrupts(threadId: string): Promise<Interrupt[]> {
      try {
        const connection = await request(`/threads/${encodeURIComponent(threadId)}/interrupts`, {});
        return ((await connection.json()) as { items: Interrupt[] }).items;
      } catch (error) {
        if (error instanceof ProblemError && error.status === 404) return [];
        throw error;
      }
    },

    /** Ends a run: now, or after its current step. */
    async stop(threadId: string, runId: string, mode: "cancel" | "interrupt" = "cancel"): Promise<RunRecord> {
      const path = `${pathOf(threadId)}/${encodeURIComponent(runId)}/cancel`;
      return (await (await request(path, posted({ mode }))).json()) as RunRecord;
    },
  };
}
export type Client = ReturnType<typeof createClient>;

const pathOf = (threadId: string) => `/threads/${encodeURIComponent(threadId)}/runs`;

const posted = (body: unknown, headers: Readonly<Record<string, string>> = {}): RequestInit => ({
  method: "POST",
  body: JSON.stringify(body),
  headers: { ...headers, "content-type": "application/json" },
});

/** Mistakes that would otherwise look like a server that is away. */
function assertUsable(base: string, { headers = {}, silenceMs, longestPauseMs }: ClientOptions): void {
  for (const [name, ms] of Object.entries({ silenceMs, longestPauseMs })) {
    if (ms === undefined || (ms > 0 && ms <= LONGEST_TIMER_MS)) continue;
    throw new RangeError(`\`${name}\` is ${ms}; it must be between 1 and ${LONGEST_TIMER_MS} milliseconds.`);
  }
  try {
    new Request(`${base}/health`, { headers });
  } catch (cause) {
    throw new TypeError(`No request can be made with the \`baseUrl\` \`${base}\` and these headers.`, {
      cause,
    });
  }
}

function assertEvents(connection: Connection): void {
  const type = connection.headers.get("content-type") ?? "nothing";
  if (type.startsWith("text/event-stream")) return;
  connection.close();
  throw new Error(
    `The answer is \`${type}\`, not an event stream. Is \`baseUrl\` the address of a Skein server?`,
  );
}

const AWAY: readonly number[] = [502, 503, 504];

/** Whether the same request may succeed later: the network, a server that restarts, a limit that is soon over. */
function isPassing(error: unknown): error is Error {
  if (error instanceof ConnectionLost) return true;
  if (!(error instanceof ProblemError)) return false;
  return error.status === 429 ? (error.retryAfterMs ?? 0) <= LONGEST_LIMIT_MS : AWAY.includes(error.status);
}

/** At random up to a bound that doubles: clients that lost the same server come back at different moments. */
function delayAfter(reason: Error, attempt: number, longest: number): number {
  const asked = reason instanceof ProblemError ? (reason.retryAfterMs ?? 0) : 0;
  const jitter = Math.random() * Math.min(longest, FIRST_PAUSE_MS * 2 ** (attempt - 1));
  return Math.min(asked + jitter, LONGEST_TIMER_MS);
}

/** Throws the reason of `signal` as soon as it aborts. */
async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => reject(signal?.reason);
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
