// The client for front ends: every route of the native API, typed; runs, threads and the user's changes, followed across lost
// connections. Needs only `fetch`: any browser, also on plain http, and Node from 18 on.

import { createMethods } from "./methods.ts";
import {
  type Body,
  type ClientHeaders,
  createRequests,
  type HeadersFunction,
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
   * A function is called before each request, so that a new token can replace one that has expired; and with the refusal when
   * the server answers 401: if it then returns other headers, the request is sent once more. What it throws ends the call,
   * except `ConnectionLost`, after which a followed stream is retried.
   */
  readonly headers?: ClientHeaders | HeadersFunction;
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
  /** Called when what is followed is connected, and when a connection breaks and is tried again: each change once. */
  readonly onConnection?: (state: ConnectionState) => void;
}

/** As `POST /threads/:id/runs` takes it. */
export type RunOptions = Omit<Body<"POST /threads/{thread_id}/runs">, "background">;

/**
 * Throws `TypeError` for an invalid `baseUrl` or headers and where there is no `fetch`, `RangeError` for a time out of
 * range.
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
     * Starts a run and yields all of its events. After a lost connection it resumes at the next event: none is missed or
     * repeated, and no second run starts. It retries until `signal` aborts, which stops following but not the run. Throws
     * `ProblemError` when the server refuses the request, also when the credentials end while the run is followed: with
     * `headers` as a function, the function is asked for new ones instead of that.
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
     * Answers the interrupts of a run and yields the events of the run that resumes it, as `run` does. Throws
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

    /** Starts a run without following it. Repeats the request until the server responds: no second run starts. */
    start(threadId: string, run: RunOptions, options?: StartOptions, signal?: AbortSignal): Promise<Run> {
      const input = { path: { thread_id: threadId }, body: { ...run, background: true } };
      return streams.start("POST /threads/{thread_id}/runs", input, options, signal);
    },

    /** Answers the interrupts of a run without following the run that resumes it, as `start` does. */
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
     * Yields the events of a thread, run after run, no matter who starts them: from `after` on, else from the run in progress or
     * the next one. Ends only when `signal` aborts, and throws its reason. Retries and throws as `run`; `not_found` when the
     * thread does not exist, or no longer.
     */
    follow(
      threadId: string,
      options?: CursorOptions,
      signal?: AbortSignal,
    ): AsyncGenerator<StreamEvent, void, void> {
      return streams.ofThread(threadId, options, signal);
    },

    /**
     * Yields what changes among the user's threads, runs, interrupts and backends. Live only. Ends only when `signal`
     * aborts, and throws its reason. Retries and throws as `run`.
     */
    changes(signal?: AbortSignal, options?: ChangesOptions): AsyncGenerator<UserEvent, void, void> {
      return streams.ofUser(signal, options);
    },

    runs: {
      ...methods.runs,
      /** Yields the events of a run that are kept, from `after` on, and ends with the run. Retries and throws as `run`. */
      events: streams.ofRun,
    },
  };
}
export type Client = ReturnType<typeof createClient>;

/** Rejects options that would otherwise look like an unreachable server. */
function assertUsable(
  base: string,
  { headers, fetch: given, silenceMs, longestPauseMs }: ClientOptions,
): void {
  if (typeof (given ?? globalThis.fetch) !== "function")
    throw new TypeError(
      "There is no `fetch` here. Node has it from 18 on; on older ones, pass one as `fetch`.",
    );
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
