// The response to a request for a run: its events as a stream, or the run after its end. A viewer has a cursor instead
// of a queue: it continues to read from the log.

import type { FastifyReply, FastifyRequest } from "fastify";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import { Message } from "../../agent/core/message.ts";
import type { Output } from "../../agent/core/output.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import type { Cursor, LogEntry, RunKey, Stores } from "../../agent/core/stores.ts";
import { getRun, keyOf, stopRun } from "../../engine/runs/control.ts";
import { followThread, messagesIn, outputOf, type ThreadCursor } from "../../engine/runs/follow.ts";
import { endRun } from "../../engine/runs/start.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import { isRevoked } from "../auth/credential-end.ts";
import { clientDisconnect } from "./client-disconnect.ts";
import { bodyIsDone } from "./incoming-bodies.ts";
import { inSlices, jsonOf, listOf, payloadOf } from "./long-responses.ts";
import { FinishedRun } from "./schemas.ts";
import type { RouteServices } from "./services.ts";
import { credentialsEnd, type Frame, type Frames, resetFrame } from "./sse.ts";
import { type App, fittingJson } from "./validation.ts";

export interface RunReplyOptions {
  readonly owner: Owner;
  readonly background: boolean;
  /** The action to take on the run if the client disconnects before the run ends. */
  readonly on_disconnect: "continue" | "cancel";
  /** Called once the client has read the whole answer, unless it was `background`. Never throws. */
  readonly onRead?: () => Promise<void>;
}

/**
 * Starts or finds a run, and responds with its stream, with the ended run, or at once. `start` receives the id of the
 * stream's place. The place is reserved first, so no run starts for a client that is refused.
 */
export async function replyWithRun(
  { runs, streams, access, unreadResponses, stores: { events } }: RouteServices,
  { owner, background, on_disconnect, onRead }: RunReplyOptions,
  { request, reply, json }: { request: FastifyRequest; reply: FastifyReply; json: FinishedJson },
  start: (stream: string | undefined) => Promise<RunRecord>,
) {
  const place = background || wantsJson(request) ? undefined : streams.take(reply);
  const run = await start(place?.id);
  place?.keep();
  const key = keyOf(owner, run);
  reply.header("location", `/threads/${run.thread_id}/runs/${run.id}/events`);
  if (background) return reply.code(202).send(run);

  const onLeft = async () => {
    if (on_disconnect === "cancel") await cancelIfActive(runs, key);
  };
  if (!place) {
    bodyIsDone(request);
    const over = credentialsEnd(access.credentials, reply);
    const ended = await finishedRun(runs.stores, key, { reply, closing: streams.closing, over }, onLeft);
    const parts = finishedParts(owner.tenant, ended, json);
    if (onRead) reply.raw.once("finish", () => void onRead());
    return jsonOf(reply, await payloadOf(parts, () => unreadResponses.open(reply), ended.bytes));
  }
  const after = await resumeAt(events, owner, run, lastEventId(request));
  if (after === undefined) return reply.code(204).send(null);
  const frames = runFrames(runs.stores, key, after);
  if ((await place.send(onRead ? toTheirEnd(frames, onRead) : frames, "comment")) === "left") await onLeft();
  return undefined;
}

/** Writes an ended run as JSON. */
export interface FinishedJson {
  readonly ofMessage: (message: Message) => string;
  readonly ofRun: (run: RunWithMessages["run"]) => string;
}

export function finishedJson(app: App, url: string): FinishedJson {
  const route = { method: "POST", url };
  return {
    ofMessage: fittingJson(app, Message, route),
    ofRun: fittingJson(app, FinishedRun.omit({ messages: true }), route),
  };
}

async function* finishedParts(tenant: string, { run, messages }: RunWithMessages, json: FinishedJson) {
  yield '{"messages":';
  yield* listOf(inSlices(tenant, messages, json.ofMessage));
  yield `,${json.ofRun(run).slice(1)}`;
}

/** Cancels a run unless it has ended. */
export const cancelIfActive = (runs: RouteServices["runs"], key: RunKey): Promise<void> =>
  unlessEnded(stopRun(runs, key, "cancel"));

/** Cancels a turn's current run, even while it waits for an answer or a result. Does nothing if the turn has ended. */
export const cancelTurnAt = (runs: RouteServices["runs"], key: RunKey): Promise<void> =>
  unlessEnded(endRun(runs, key, "cancel"));

async function unlessEnded(cancelling: Promise<unknown>): Promise<void> {
  await cancelling.catch((error: unknown) => {
    if (!hasCode(error, "run_not_active")) throw error;
  });
}

const wantsJson = ({ headers }: FastifyRequest) =>
  (headers.accept?.includes("application/json") ?? false) && !headers.accept?.includes("text/event-stream");

interface RunWithMessages {
  readonly run: RunRecord & { readonly output?: Output };
  /** The messages that the run added to the thread. */
  readonly messages: readonly Message[];
  /** The approximate size of the messages, in bytes. */
  readonly bytes: number;
}

/**
 * Resolves with the ended run and the messages that it added to the thread. If the client disconnects first, calls
 * `onLeft` and returns the run's current state. Throws `shutting_down`, `credentials_expired` or `credentials_revoked`.
 */
async function finishedRun(
  stores: Stores,
  key: RunKey,
  { reply, closing, over }: { reply: FastifyReply; closing: AbortSignal; over: AbortSignal },
  onLeft: () => Promise<void>,
): Promise<RunWithMessages> {
  const left = clientDisconnect(reply);
  const messages: Message[] = [];
  let bytes = 0;
  for await (const batch of stores.events.read(key, 0, AbortSignal.any([left, closing, over]))) {
    messages.push(...(await messagesIn(batch, key.owner.tenant)));
    for (const { event, json } of batch) if (event === "on_message") bytes += json.length;
  }
  if (left.aborted || isRevoked(over)) await onLeft();
  if (over.aborted) throw over.reason;
  if (!left.aborted && closing.aborted)
    throw new AppError("shutting_down", "The server is shutting down. The run is kept.");
  const run = await getRun({ stores }, key);
  const output = await outputOf(stores.events, key, run);
  return { run: { ...run, ...omitUndefined({ output }) }, messages, bytes };
}

/** Yields the entries after `after`. If entries were dropped, yields a reset frame, then the remaining entries. */
export function runFrames({ events }: Pick<Stores, "events">, key: RunKey, after: Cursor): Frames {
  return async function* (signal) {
    for (let cursor = after; ; ) {
      try {
        for await (const batch of events.read(key, cursor, signal)) {
          yield batch.map((entry) => frame(key.run_id, entry));
          cursor = batch.at(-1) ?? cursor;
        }
        return;
      } catch (error) {
        if (!hasCode(error, "events_expired")) throw error;
        yield [resetFrame(error)];
        const { last } = await events.bounds(key);
        if (last === 0) return;
        cursor = { seq: await events.seen(key, cursor) };
      }
    }
  };
}

/** Calls `onEnd`, which never throws, once the client has read the last frame. */
export function toTheirEnd(frames: Frames, onEnd: () => Promise<void>): Frames {
  return async function* (signal) {
    yield* frames(signal);
    if (!signal.aborted) await onEnd();
  };
}

/** Yields the entries of a thread, run after run, like `runFrames`. */
export function threadFrames(stores: Stores, thread: ThreadCursor): Frames {
  return async function* (signal) {
    for await (const { run, after } of followThread(stores, thread, signal))
      yield* runFrames(stores, keyOf(thread.owner, run), after)(signal);
  };
}

/** The frame's id is the cursor with which a client reconnects: `<run>:<epoch>-<seq>`, opaque to the client. */
const frame = (runId: string, { epoch, seq, event, json }: LogEntry): Frame => ({
  id: `${runId}:${epoch}-${seq}`,
  event,
  data: json,
});

const CURSOR = /^(?:(?<run>[A-Za-z0-9_-]{1,128}):(?<epoch>\d{1,9})-)?(?<seq>\d{1,9})$/;

/** Returns the cursor with which a client reconnects. */
export function lastEventId({ headers }: FastifyRequest): string | undefined {
  const header = headers["last-event-id"];
  return typeof header === "string" ? header : undefined;
}

export function idempotencyKey({ headers }: FastifyRequest): string | undefined {
  const key = headers["idempotency-key"];
  return typeof key === "string" ? key : undefined;
}

/** Returns the run and the event that a thread's cursor names. Throws `invalid_request`. */
export function parseThreadCursor(cursor: string): { runId: string; after: Cursor } {
  const { run, seq, epoch } = CURSOR.exec(cursor)?.groups ?? {};
  if (run === undefined) throw notACursor();
  return { runId: run, after: { seq: Number(seq), epoch: Number(epoch) } };
}

/**
 * Returns the position at which to continue, or undefined if the run has ended and was read to its end. Without a
 * cursor, starts at the first event that is still stored. Throws `invalid_request` for a cursor of another run, and
 * `events_expired` if the event at the cursor, or events after it, are no longer stored.
 */
export async function resumeAt(
  events: Stores["events"],
  owner: Owner,
  run: RunRecord,
  cursor: string | undefined,
): Promise<Cursor | undefined> {
  const key = keyOf(owner, run);
  const { first, last } = await events.bounds(key);
  const hasEnded = isSettled(run.status);
  if (hasEnded && last === 0) throw expired();
  if (cursor === undefined || cursor === "") return { seq: 0 };
  const parts = CURSOR.exec(cursor)?.groups;
  if (!parts || (parts.run !== undefined && parts.run !== run.id)) throw notACursor();
  const epoch = parts.epoch === undefined ? undefined : Number(parts.epoch);
  const after = { seq: Number(parts.seq), ...omitUndefined({ epoch }) };
  if (after.seq > last || after.seq < first - 1) throw expired();
  if ((await events.seen(key, after)) !== after.seq) throw expired();
  return hasEnded && after.seq === last ? undefined : after;
}

const notACursor = () =>
  new AppError(
    "invalid_request",
    "This is not a cursor of this run. Use the id of the last event that you received from it.",
  );

export const expired = () =>
  new AppError(
    "events_expired",
    "Events after this cursor are no longer available. Read the thread's messages instead.",
  );
