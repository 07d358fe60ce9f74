// The client for front ends. It has a typed method for every route of the native API. It follows runs, threads and the
// user's changes, and reconnects when a connection is lost. It needs only `fetch`, so it runs in any browser, even on
// plain http, and on Node 18 or later.

import { createMethods } from "./methods.ts";
import {
  type Body,
  type ClientHeaders,
  createRequests,
  type HeadersFunction,
  type Reply,
  type Sent,
} from "./requests.ts";
import { type ConnectionState, createRetries, LONGEST_TIMER_MS } from "./retries.ts";
import {
  type ChangesOptions,
  type CursorOptions,
  createStreams,
  type FollowOptions,
  type StartOptions,
} from "./streams.ts";
import type { Answer, Run, StreamEvent, UserEvent } from "./wire.ts";

export { ConnectionLost, ProblemError } from "./connection.ts";
export type { OfAgent, ReadOptions, SharedPlace } from "./methods.ts";
export { type Ending, type Outcome, outcomeOf } from "./outcome.ts";
export { blobOf, partOf } from "./parts.ts";
export type { Body, ClientHeaders, HeadersFunction, Operation, Query, Reply, Sent } from "./requests.ts";
export type { ConnectionState } from "./retries.ts";
export type { ChangesOptions, CursorOptions, FollowOptions, StartOptions } from "./streams.ts";
export type * from "./wire.ts";
export type { Run as RunRecord } from "./wire.ts";

export interface ClientOptions {
  readonly baseUrl: string;
  /**
   * Headers for each request. If this is a function, it is called before each request, so it can replace an expired
   * token. After a 401, it is called with the refusal; if it returns different headers, the client retries once. An
   * error that it throws ends the call. The exception is `ConnectionLost`, after which a followed stream is retried.
   */
  readonly headers?: ClientHeaders | HeadersFunction;
  readonly fetch?: typeof fetch;
  /**
   * How long a connection can be silent before it counts as lost, in milliseconds; default 25,000. Must be longer than
   * the server's heartbeat interval, which is 10 seconds by default.
   */
  readonly silenceMs?: number;
  /**
   * The longest pause between two attempts, in milliseconds; default 10,000. If the server asks for a longer pause, the
   * client waits that long.
   */
  readonly longestPauseMs?: number;
  /** Called before each pause. `attempt` starts at 1, and starts over after each event. */
  readonly onRetry?: (reason: Error, attempt: number, delayMs: number) => void;
  /**
   * Called when the followed streams are connected, and when a connection is lost and being retried. Reports each change
   * once.
   */
  readonly onConnection?: (state: ConnectionState) => void;
}

/** The body of `POST /threads/:id/runs`, without `background`. */
export type RunOptions = Omit<Body<"POST /threads/{thread_id}/runs">, "background">;

/** The body of `POST /runs`, without `background`. */
export type NewThreadRunOptions = Omit<Body<"POST /runs">, "background">;

/**
 * Creates a client. Throws `TypeError` for an invalid `baseUrl`, for invalid headers and if `fetch` is missing, and
 * `RangeError` for a time out of range.
 */
export function createClient(options: ClientOptions) {
  const {
    fetch: send = globalThis.fetch,
    silenceMs = 25_000,
    longestPauseMs = 10_000,
    onRetry,
    onConnection,
  } = options;
  const base = options.baseUrl.replace(/\/+$/, "");
  assertUsable(base, options);

  const requests = createRequests({ base, headers: options.headers, fetch: send, silenceMs });
  const { isRenewed } = requests;
  const streams = createStreams(
    requests,
    createRetries({ longestPauseMs, onRetry, onConnection, isRenewed }),
  );
  const methods = createMethods(requests);

  return {
    ...methods,

    /**
     * Starts a run and yields all of its events. After a lost connection, it resumes with the next event, without
     * skipping or repeating events and without starting a second run. It retries until `signal` aborts. Aborting stops
     * following, but the run continues. Throws `ProblemError` when the server refuses the request, or when the
     * credentials expire while it follows the run. If `headers` is a function, the client calls it for new credentials
     * when the old ones expire.
     */
    run(
      threadId: string,
      run: RunOptions,
      signal?: AbortSignal,
      options?: FollowOptions,
    ): AsyncGenerator<StreamEvent, void, void> {
      const input = { path: { thread_id: threadId }, body: run };
      return streams.startAndFollow("POST /threads/{thread_id}/runs", input, signal, options);
    },

    /**
     * Answers the interrupts of a run and yields the events of the run that resumes it, like `run`. Throws
     * `interrupt_closed` when an interrupt was already answered.
     */
    resume(
      threadId: string,
      runId: string,
      answers: readonly Sent<Answer>[],
      signal?: AbortSignal,
      options?: FollowOptions,
    ): AsyncGenerator<StreamEvent, void, void> {
      const input = { path: { thread_id: threadId, run_id: runId }, body: { answers } };
      return streams.startAndFollow("POST /threads/{thread_id}/runs/{run_id}/resume", input, signal, options);
    },

    /** Starts a run without following it. Retries the request until the server responds, without starting a second run. */
    start(threadId: string, run: RunOptions, options?: StartOptions, signal?: AbortSignal): Promise<Run> {
      const input = { path: { thread_id: threadId }, body: { ...run, background: true } };
      return streams.start("POST /threads/{thread_id}/runs", input, options, signal);
    },

    /** Answers the interrupts of a run, like `start`, without following the run that resumes it. */
    answer(
      threadId: string,
      runId: string,
      answers: readonly Sent<Answer>[],
      options?: StartOptions,
      signal?: AbortSignal,
    ): Promise<Run> {
      const input = { path: { thread_id: threadId, run_id: runId }, body: { answers, background: true } };
      return streams.start("POST /threads/{thread_id}/runs/{run_id}/resume", input, options, signal);
    },

    /**
     * Yields the events of a thread, run after run, for runs of all clients. Starts after the cursor `after`. Without a
     * cursor, starts with the run in progress or the next run. Ends only when `signal` aborts, and then throws its
     * reason. Retries and throws like `run`; throws `not_found` when the thread does not exist.
     */
    follow(
      threadId: string,
      options?: CursorOptions,
      signal?: AbortSignal,
    ): AsyncGenerator<StreamEvent, void, void> {
      return streams.ofThread(threadId, options, signal);
    },

    /**
     * Yields live changes of the user's threads, runs, interrupts and backends. Ends only when `signal` aborts, and
     * then throws its reason. Retries and throws like `run`.
     */
    changes(signal?: AbortSignal, options?: ChangesOptions): AsyncGenerator<UserEvent, void, void> {
      return streams.ofUser(signal, options);
    },

    runs: {
      ...methods.runs,
      /**
       * Yields the stored events of a run after the cursor `after`, and ends when the run ends. Retries and throws like
       * `run`.
       */
      events: streams.ofRun,
      /** Starts a run on a new thread and yields its events, like `run`. */
      stream: (
        run: NewThreadRunOptions,
        signal?: AbortSignal,
        options?: FollowOptions,
      ): AsyncGenerator<StreamEvent, void, void> =>
        streams.startAndFollow("POST /runs", { body: run }, signal, options),
      /** Starts a run on a new thread without following it, like `start`. The returned run contains the thread's id. */
      start: (run: NewThreadRunOptions, options?: StartOptions, signal?: AbortSignal): Promise<Run> =>
        streams.start("POST /runs", { body: { ...run, background: true } }, options, signal),
      /**
       * Starts up to 100 runs, each on a new thread. For each run, in order, returns the run, or the error if the
       * server refuses it. Retries like `start`.
       */
      startAll: async (
        runs: Body<"POST /runs/batch">["runs"],
        options?: StartOptions,
        signal?: AbortSignal,
      ): Promise<Reply<"POST /runs/batch">["items"]> =>
        (await streams.start("POST /runs/batch", { body: { runs } }, options, signal)).items,
    },
  };
}
export type Client = ReturnType<typeof createClient>;

/** Rejects invalid options that would otherwise look like an unreachable server. */
function assertUsable(
  base: string,
  { headers, fetch: given, silenceMs, longestPauseMs }: ClientOptions,
): void {
  if (typeof (given ?? globalThis.fetch) !== "function")
    throw new TypeError(
      "This platform has no `fetch`. Use Node 18 or later, or pass an implementation as the option `fetch`.",
    );
  for (const [name, ms] of Object.entries({ silenceMs, longestPauseMs })) {
    if (ms === undefined || (ms > 0 && ms <= LONGEST_TIMER_MS)) continue;
    throw new RangeError(`\`${name}\` is ${ms}; it must be between 1 and ${LONGEST_TIMER_MS} milliseconds.`);
  }
  try {
    new Request(`${base}/health`, { headers: typeof headers === "object" ? headers : {} });
  } catch (cause) {
    throw new TypeError(`The \`baseUrl\` \`${base}\` is not a valid URL, or a header is invalid.`, {
      cause,
    });
  }
}
