// Follows event streams across lost connections. A stream can be that of a run that it starts, an existing run, a
// thread, or the user's changes.

import { trackEnd } from "../protocol/end.ts";
import { assertType, ConnectionLost, type HttpConnection, ProblemError } from "./connection.ts";
import { type Frame, frames } from "./frames.ts";
import type { Extra, Input, Operation, Reply, Requests } from "./requests.ts";
import type { ConnectionState, RetriesFor } from "./retries.ts";
import type { Run, StreamEvent, UserEvent } from "./wire.ts";

/** The options for following a run that the call starts. */
export interface FollowOptions {
  /**
   * Called once with the ids of the started run and of its thread, before the run's first event. This happens even
   * while the run waits for a slot.
   */
  readonly onStarted?: (runId: string, threadId: string) => void;
  /**
   * The unit to follow, `run` by default. `turn` also follows the run that continues after a deferred tool call gets
   * its result. A new message ends the turn.
   */
  readonly unit?: "run" | "turn";
}

/** The options for reading events that the server keeps in a log. */
export interface CursorOptions {
  /** The cursor of the last event that you have. The stream starts with the next event. */
  readonly after?: string | undefined;
  /**
   * Called with the cursor of each event, before the event. To continue without missing events, even after a page
   * reload, pass the latest cursor as `after`.
   */
  readonly onCursor?: (cursor: string) => void;
  /**
   * Called when you may have missed events, because the server no longer keeps them or the connection was lost before
   * the first event. Read the displayed data from the server again. Newer events will follow.
   */
  readonly onReset?: () => void;
  /**
   * Like the client's `onConnection`, but only for this stream. If you read data after the state becomes `live`, you do
   * not miss any changes that follow.
   */
  readonly onConnection?: (state: ConnectionState) => void;
}

export interface ChangesOptions {
  /**
   * Called each time the stream connects, and after the server has dropped events. The server does not resend earlier
   * changes, so read the current data.
   */
  readonly onConnected?: () => void;
}

export interface StartOptions {
  /**
   * A second request with the same key does not start a second run. By default, each call uses a new key for all of its
   * attempts.
   */
  readonly idempotencyKey?: string;
}

type Start =
  | "POST /threads/{thread_id}/runs"
  | "POST /threads/{thread_id}/runs/{run_id}/resume"
  | "POST /runs";

export function createStreams(requests: Requests, retriesFor: RetriesFor) {
  const { open, call } = requests;
  return {
    /** Retries the POST with the same idempotency key until the server responds, then follows the run. */
    startAndFollow: <K extends Start>(
      operation: K,
      input: Input<K>,
      signal?: AbortSignal,
      options?: FollowOptions,
    ) => startAndFollow(requests, retriesFor, { operation, input, signal, ...options }),

    /** Retries the POST with the same idempotency key until the server responds. Does not wait for the run. */
    async start<K extends Start | "POST /runs/batch">(
      operation: K,
      input: Input<K>,
      { idempotencyKey }: StartOptions = {},
      signal?: AbortSignal,
    ): Promise<K extends Start ? Run : Reply<K>> {
      const extra = keyed(idempotencyKey);
      const answer = patiently(
        retriesFor,
        () => call(operation as Operation, input as Input<Operation>, signal, extra),
        signal,
      );
      // If no stream is requested, the server responds with the run itself.
      return (await answer) as K extends Start ? Run : Reply<K>;
    },

    ofRun(threadId: string, runId: string, options: CursorOptions = {}, signal?: AbortSignal) {
      const path = { thread_id: threadId, run_id: runId };
      return logged(
        retriesFor,
        (cursor) => open("GET /threads/{thread_id}/runs/{run_id}/events", { path }, signal, at(cursor)),
        options,
        signal,
        isEnd,
      );
    },

    ofThread(threadId: string, options: CursorOptions = {}, signal?: AbortSignal) {
      const path = { thread_id: threadId };
      let wasConnected = false;
      const connect = async (cursor: string | undefined) => {
        const connection = await open("GET /threads/{thread_id}/events", { path }, signal, at(cursor));
        // A run may have begun and ended while the connection was lost.
        if (wasConnected && cursor === undefined) options.onReset?.();
        wasConnected = true;
        return connection;
      };
      return logged(retriesFor, connect, options, signal, () => false);
    },

    async *ofUser(
      signal?: AbortSignal,
      { onConnected }: ChangesOptions = {},
    ): AsyncGenerator<UserEvent, void, void> {
      const connect = async () => {
        const connection = await open("GET /events", {}, signal);
        onConnected?.();
        return connection;
      };
      for await (const { event, data } of stream(retriesFor, connect, undefined, signal)) {
        if (event === "stream_reset") onConnected?.();
        else yield JSON.parse(data) as UserEvent;
      }
    },
  };
}

interface RunToFollow<K extends Start> extends FollowOptions {
  readonly operation: K;
  readonly input: Input<K>;
  readonly signal: AbortSignal | undefined;
}

async function* startAndFollow<K extends Start>(
  { open, call }: Requests,
  retriesFor: RetriesFor,
  { operation, input, signal, onStarted, unit = "run" }: RunToFollow<K>,
): AsyncGenerator<StreamEvent, void, void> {
  let { path } = input as { path?: { thread_id: string } };
  const waits = unit === "turn" ? trackWaiting() : () => false;
  const extra = keyed();
  let runId: string | undefined;
  let isWaiting = false;
  const connect = async (cursor: string | undefined) => {
    if (cursor !== undefined && isWaiting && path)
      return open("GET /threads/{thread_id}/events", { path }, signal, at(cursor));
    if (cursor !== undefined && runId !== undefined && path) {
      const run = { thread_id: path.thread_id, run_id: runId };
      return open("GET /threads/{thread_id}/runs/{run_id}/events", { path: run }, signal, at(cursor));
    }
    const connection = await open(operation, input, signal, extra);
    const started = startedAt(connection.headers.get("location"));
    path ??= started && { thread_id: started.thread };
    if (runId === undefined && started) onStarted?.(started.run, started.thread);
    runId = started?.run ?? runId;
    return connection;
  };
  const isLast = (event: StreamEvent) => {
    const waitsNow = waits(event);
    if (!isEnd(event)) return false;
    isWaiting ||= waitsNow;
    return !waitsNow;
  };
  for await (const event of logged(retriesFor, connect, {}, signal, isLast)) {
    if (isWaiting && path && event.event === "run_start" && !event.path) {
      const next = { thread_id: path.thread_id, run_id: event.run_id ?? "" };
      const read = () => call("GET /threads/{thread_id}/runs/{run_id}", { path: next }, signal);
      const run = (await patiently(retriesFor, read, signal)) as Run;
      if (run.resumes !== runId) return;
      runId = run.id;
    }
    yield event;
  }
}

/**
 * Reconnects until the caller stops. Ends on its own only if the server responds with 204, which means that there will
 * be no more events.
 */
async function* stream(
  retriesFor: RetriesFor,
  connect: (cursor: string | undefined) => Promise<HttpConnection>,
  after: string | undefined,
  signal: AbortSignal | undefined,
  onConnection?: CursorOptions["onConnection"],
): AsyncGenerator<Frame, void, void> {
  const retries = retriesFor(signal, onConnection);
  let cursor = after;
  try {
    for (;;) {
      try {
        const connection = await connect(cursor);
        if (connection.status === 204) return connection.close();
        assertType(connection, "text/event-stream", "an event stream");
        retries.reached();
        for await (const frame of frames(connection.chunks())) {
          if (frame.event === "server_shutdown") continue;
          if (frame.event === "credentials_ended") throw new ProblemError(401, problemIn(frame.data));
          if (frame.id !== undefined) cursor = frame.id;
          retries.moved();
          yield frame;
        }
        throw new ConnectionLost("The stream was closed before the run ended.");
      } catch (error) {
        await retries.failed(error);
      }
    }
  } finally {
    retries.ended();
  }
}

/** Yields the events of a log until `isLast` returns true for one of them. */
async function* logged(
  retriesFor: RetriesFor,
  connect: (cursor: string | undefined) => Promise<HttpConnection>,
  { after, onCursor, onReset, onConnection }: CursorOptions,
  signal: AbortSignal | undefined,
  isLast: (event: StreamEvent) => boolean,
): AsyncGenerator<StreamEvent, void, void> {
  for await (const frame of stream(retriesFor, connect, after, signal, onConnection)) {
    if (frame.event === "stream_reset") onReset?.();
    if (frame.id === undefined) continue;
    const event = JSON.parse(frame.data) as StreamEvent;
    onCursor?.(frame.id);
    yield event;
    if (isLast(event)) return;
  }
}

/** Retries a call until the server responds. */
async function patiently<T>(
  retriesFor: RetriesFor,
  attempt: () => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const retries = retriesFor(signal);
  try {
    for (;;) {
      try {
        const answer = await attempt();
        retries.reached();
        return answer;
      } catch (error) {
        await retries.failed(error);
      }
    }
  } finally {
    retries.ended();
  }
}

const at = (cursor: string | undefined): Extra =>
  cursor === undefined ? {} : { headers: { "last-event-id": cursor } };

const isEnd = ({ event }: StreamEvent) => event === "done" || event === "error";

/**
 * Returns a function to call with each event in order. It returns true at the end of a run that a deferred result will
 * continue.
 */
function trackWaiting(): (event: StreamEvent) => boolean {
  const track = trackEnd();
  return (event) => track(event)?.as === "waits";
}

/** Returns the ids from the URL of the run's events. */
function startedAt(location: string | null): { readonly thread: string; readonly run: string } | undefined {
  const [thread, , run] = location?.split("/").slice(-4).map(decodeURIComponent) ?? [];
  return thread === undefined || run === undefined ? undefined : { thread, run };
}

/** Reads the code and message of the frame that the server sends when the credentials of a stream expire. */
function problemIn(data: string): { code: string; detail: string } {
  const { code, message: detail } = (JSON.parse(data) as { data: { code: string; message: string } }).data;
  return { code, detail };
}

const keyed = (key = randomKey()): Extra => ({ headers: { "idempotency-key": key } });

/** Does not use `crypto.randomUUID`, because pages on plain http do not have it and Node 18 has no global `crypto`. */
function randomKey(): string {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto) crypto.getRandomValues(bytes);
  else for (const place of bytes.keys()) bytes[place] = Math.floor(Math.random() * 256);
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
