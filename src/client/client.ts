// The client for front ends: starts runs and follows them across lost connections. Needs only `fetch`.

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
/** A rate limit that ends within this time is waited for; a longer one (a daily budget) is thrown. */
const LONGEST_LIMIT_MS = 60_000;
/** The longest delay of `setTimeout`, 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

type ClientHeaders = Readonly<Record<string, string>>;

export interface ClientOptions {
  readonly baseUrl: string;
  /**
   * A function is called before each request, so that a new token can replace one that has expired. What it throws ends the
   * call, except `ConnectionLost`, after which it is called again.
   */
  readonly headers?: ClientHeaders | (() => ClientHeaders | Promise<ClientHeaders>);
  readonly fetch?: typeof fetch;
  /**
   * After this silence, in ms, a connection counts as lost; default 25,000. Must exceed the server's heartbeat interval,
   * which is ten seconds by default.
   */
  readonly silenceMs?: number;
  /** The longest pause between two attempts, in ms, unless the server asks for a longer one; default 10,000. */
  readonly longestPauseMs?: number;
  /** Called before each pause. `attempt` counts from 1 and is reset by each event. */
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

/** Throws `TypeError` for an invalid `baseUrl` or headers, `RangeError` for a time out of range. */
export function createClient(options: ClientOptions) {
  const { fetch: send = fetch, silenceMs = 25_000, longestPauseMs = 10_000, onRetry } = options;
  const base = options.baseUrl.replace(/\/+$/, "");
  assertUsable(base, options);

  const isRenewed = typeof options.headers === "function";
  const request = async (path: string, init: RequestInit, signal?: AbortSignal) => {
    const own = typeof options.headers === "function" ? await options.headers() : options.headers;
    const headers = { ...own, ...(init.headers as Record<string, string> | undefined) };
    return connect({ fetch: send, silenceMs }, base + path, { ...init, headers }, signal);
  };

  /** Repeats the POST with the same idempotency key until the server responds, then follows the run. */
  async function* follow(
    path: string,
    body: unknown,
    signal?: AbortSignal,
  ): AsyncGenerator<StreamEvent, void, void> {
    const start = posted(body, { "idempotency-key": crypto.randomUUID() });
    let cursor: string | undefined;
    let events = path;
    for (let attempt = 1; ; attempt++) {
      let reason: Error = new ConnectionLost("The stream was closed before the run ended.");
      try {
        const connection = await (cursor === undefined
          ? request(path, start, signal)
          : request(events, { headers: { "last-event-id": cursor } }, signal));
        if (connection.status === 204) return;
        events = connection.headers.get("location") ?? events;
        assertEvents(connection);
        for await (const { id, event: name, data } of frames(connection.chunks())) {
          if (name === "credentials_ended") throw new ProblemError(401, problemIn(data));
          if (id === undefined) continue;
          const event = JSON.parse(data) as StreamEvent;
          cursor = id;
          attempt = 1;
          yield event;
          if (event.event === "done" || event.event === "error") return;
        }
      } catch (error) {
        if (!isTransient(error) && !(isRenewed && hasExpired(error))) throw error;
        reason = error;
      }
      const delayMs = delayAfter(reason, attempt, longestPauseMs);
      onRetry?.(reason, attempt, delayMs);
      await pause(delayMs, signal);
    }
  }

  return {
    /**
     * Starts a run and yields all of its events. After a lost connection it resumes at the next event: none is missed or
     * repeated, and no second run starts. It retries until `signal` aborts, which stops following but not the run. Throws
     * `ProblemError` when the server refuses the request, also when the credentials end while the run is followed: with
     * `headers` as a function, the function is asked for new ones instead of that.
     */
    run(threadId: string, run: RunOptions, signal?: AbortSignal): AsyncGenerator<StreamEvent, void, void> {
      return follow(pathOf(threadId), run, signal);
    },

    /**
     * Answers the interrupts of a run and yields the events of the run that resumes it, as `run` does. Throws
     * `interrupt_closed` when an interrupt was already answered.
     */
    resume(
      threadId: string,
      runId: string,
      answers: readonly Answer[],
      signal?: AbortSignal,
    ): AsyncGenerator<StreamEvent, void, void> {
      return follow(`${pathOf(threadId)}/${encodeURIComponent(runId)}/resume`, { answers }, signal);
    },

    /** The open interrupts of a thread; empty when there is no such thread. */
    async interrupts(threadId: string): Promise<Interrupt[]> {
      try {
        const connection = await request(`/threads/${encodeURIComponent(threadId)}/interrupts`, {});
        return ((await connection.json()) as { items: Interrupt[] }).items;
      } catch (error) {
        if (error instanceof ProblemError && error.status === 404) return [];
        throw error;
      }
    },

    /** Stops a run: `cancel` now, `interrupt` after its current step. */
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

/** Rejects options that would otherwise look like an unreachable server. */
function assertUsable(base: string, { headers, silenceMs, longestPauseMs }: ClientOptions): void {
  for (const [name, ms] of Object.entries({ silenceMs, longestPauseMs })) {
    if (ms === undefined || (ms > 0 && ms <= LONGEST_TIMER_MS)) continue;
    throw new RangeError(`\`${name}\` is ${ms}; it must be between 1 and ${LONGEST_TIMER_MS} milliseconds.`);
  }
  try {
    new Request(`${base}/health`, { headers: typeof headers === "object" ? headers : {} });
  } catch (cause) {
    throw new TypeError(`The \`baseUrl\` \`${base}\` or the headers are invalid.`, {
      cause,
    });
  }
}

function assertEvents(connection: Connection): void {
  const type = connection.headers.get("content-type") ?? "nothing";
  if (type.startsWith("text/event-stream")) return;
  connection.close();
  throw new Error(
    `The response is \`${type}\`, not an event stream. Check that \`baseUrl\` is a Skein server.`,
  );
}

/** The code and message of the frame with which a stream says that its credentials have ended. */
function problemIn(data: string): { code?: string; detail?: string } {
  const { code, message: detail } = (JSON.parse(data) as { data: { code: string; message: string } }).data;
  return { code, detail };
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
