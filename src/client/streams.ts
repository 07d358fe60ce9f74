// Event streams, followed across lost connections: of a run that is started, of a run, of a thread, of the user.

import { trackEnd } from "../protocol/end.ts";
import { assertType, type Connection, ConnectionLost, ProblemError } from "./connection.ts";
import { type Frame, frames } from "./frames.ts";
import type { Extra, Input, Operation, Requests } from "./requests.ts";
import type { ConnectionState, RetriesFor } from "./retries.ts";
import type { Run, StreamEvent, UserEvent } from "./wire.ts";

/** Of a run that the call starts. */
export interface FollowOptions {
  /** Called once, with the id of the run that the server has started: before its first event, also while it waits for a slot. */
  readonly onStarted?: (runId: string) => void;
  /**
   * What is followed; default: the run. `turn`: also the run that continues it once the result of a deferred tool call
   * has arrived. A new message ends the turn instead.
   */
  readonly unit?: "run" | "turn";
}

/** Of events that are in a log. */
export interface CursorOptions {
  /** The cursor of the last event that is known; the next one comes first. */
  readonly after?: string | undefined;
  /** Called before each event, with its cursor: who comes back with it as `after`, also after a reload, misses nothing. */
  readonly onCursor?: (cursor: string) => void;
  /**
   * Called when events may have been missed: they are no longer kept, or the connection was lost before the first one. What is
   * shown must be read again; newer events follow.
   */
  readonly onReset?: () => void;
  /** As the client's, for this stream alone. What is read once it is `live` misses nothing of what comes. */
  readonly onConnection?: (state: ConnectionState) => void;
}

export interface ChangesOptions {
  /** Called with each connection, and when events were dropped: what came before is not sent again, so read it. */
  readonly onConnected?: () => void;
}

export interface StartOptions {
  /** A repeat with the same key starts no second run. Default: a new key, which holds for the attempts of this call. */
  readonly idempotencyKey?: string;
}

type Start = "POST /threads/{thread_id}/runs" | "POST /threads/{thread_id}/runs/{run_id}/resume";

export function createStreams(requests: Requests, retriesFor: RetriesFor) {
  const { open, call } = requests;
  return {
    /** Repeats the POST with the same idempotency key until the server responds, then follows the run. */
    startAndFollow: <K extends Start>(
      operation: K,
      input: Input<K>,
      signal?: AbortSignal,
      options?: FollowOptions,
    ) => startAndFollow(requests, retriesFor, { operation, input, signal, ...options }),

    /** Repeats the POST with the same idempotency key until the server responds. Does not wait for the run. */
    async start<K extends Start>(
      operation: K,
      input: Input<K>,
      { idempotencyKey }: StartOptions = {},
      signal?: AbortSignal,
    ): Promise<Run> {
      const extra = keyed(idempotencyKey);
      const answer = patiently(
        retriesFor,
        () => call(operation as Operation, input as Input<Operation>, signal, extra),
        signal,
      );
      return (await answer) as Run;
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
        // A run may have begun and ended meanwhile.
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
  const { path } = input as Input<Start>;
  const waits = unit === "turn" ? trackWaiting() : () => false;
  const extra = keyed();
  let runId: string | undefined;
  let isWaiting = false;
  const connect = async (cursor: string | undefined) => {
    if (cursor !== undefined && isWaiting)
      return open("GET /threads/{thread_id}/events", { path }, signal, at(cursor));
    if (cursor !== undefined && runId !== undefined) {
      const run = { thread_id: path.thread_id, run_id: runId };
      return open("GET /threads/{thread_id}/runs/{run_id}/events", { path: run }, signal, at(cursor));
    }
    const connection = await open(operation, input, signal, extra);
    const started = runIn(connection.headers.get("location"));
    if (runId === undefined && started !== undefined) onStarted?.(started);
    runId = started ?? runId;
    return connection;
  };
  const isLast = (event: StreamEvent) => {
    const waitsNow = waits(event);
    if (!isEnd(event)) return false;
    isWaiting ||= waitsNow;
    return !waitsNow;
  };
  for await (const event of logged(retriesFor, connect, {}, signal, isLast)) {
    if (isWaiting && event.event === "run_start" && !event.path) {
      const next = { thread_id: path.thread_id, run_id: event.run_id ?? "" };
      const read = () => call("GET /threads/{thread_id}/runs/{run_id}", { path: next }, signal);
      const run = (await patiently(retriesFor, read, signal)) as Run;
      if (run.resumes !== runId) return;
      runId = run.id;
    }
    yield event;
  }
}

/** Ends by itself only when the server says that nothing more comes (204). */
async function* stream(
  retriesFor: RetriesFor,
  connect: (cursor: string | undefined) => Promise<Connection>,
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

/** The events of a log. `isLast` is asked after each one. */
async function* logged(
  retriesFor: RetriesFor,
  connect: (cursor: string | undefined) => Promise<Connection>,
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

/** Repeats a call until the server responds. */
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

/** To be called with each event in order. True at the end of a run that a deferred result will continue. */
function trackWaiting(): (event: StreamEvent) => boolean {
  const track = trackEnd();
  return (event) => track(event)?.as === "waits";
}

/** The id in the address of a run's events. */
function runIn(location: string | null): string | undefined {
  const id = location?.split("/").at(-2);
  return id === undefined ? undefined : decodeURIComponent(id);
}

/** The code and message of the frame with which a stream says that its credentials have ended. */
function problemIn(data: string): { code: string; detail: string } {
  const { code, message: detail } = (JSON.parse(data) as { data: { code: string; message: string } }).data;
  return { code, detail };
}

const keyed = (key = randomKey()): Extra => ({ headers: { "idempotency-key": key } });

/** Not `crypto.randomUUID`, which pages on plain http do not have; Node 18 has no global `crypto` at all. */
function randomKey(): string {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto) crypto.getRandomValues(bytes);
  else for (const place of bytes.keys()) bytes[place] = Math.floor(Math.random() * 256);
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
