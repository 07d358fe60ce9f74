// Server-Sent Events: how many streams may be open, and how a stream is sent. Frames are pulled as fast as the socket
// accepts them, so a slow client occupies only a bounded buffer and does not delay runs or other clients.

import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import { Shares, sharedPlaces } from "../../agent/core/shares.ts";
import { admit, type Hold, holdWhile } from "../../engine/quotas/holds.ts";
import type { Quotas } from "../../engine/quotas/index.ts";
import { linkedTo } from "../../lib/async.ts";
import { atMostEvery } from "../../lib/at-most-every.ts";
import type { Logger } from "../../lib/logger.ts";
import { randomId } from "../../lib/random-id.ts";
import { ownTick } from "../../lib/ticks.ts";
import { type Credentials, isRevoked } from "../auth/credential-end.ts";
import { ownerOf, principalOf } from "../auth/guard.ts";
import { clientDisconnect, counted, cutWhenStalled, isLong, piecesOf } from "./client-disconnect.ts";
import { bodyIsDone } from "./incoming-bodies.ts";
import type { LongText } from "./json-parts.ts";
import type { ReportUnread, UnreadResponses } from "./unread-responses.ts";

/** One event of a stream. `data` is JSON, on one line. */
export interface Frame {
  readonly id?: string;
  /** If it is not set, clients use their default, `message`. */
  readonly event?: string;
  readonly data: string;
}

/** A frame whose data is created while it is written. */
export type LongFrame = Omit<Frame, "data"> & { readonly data: LongText };

/** The number of characters of a long event to write in one tick of the event loop. */
const TURN_CHARS = 128 * 1024;

/** The minimum interval between two log lines about streams that ended early, in ms. */
const LOG_MS = 10_000;

/** The last frame before a shutdown, which asks the client to reconnect. */
const SHUTDOWN: Frame = { event: "server_shutdown", data: "{}" };

/** Reports a gap: the client must read the thread again, and the stream continues with the next event. */
export const resetFrame = (error: AppError): Frame => ({
  event: "stream_reset",
  data: JSON.stringify({ event: "stream_reset", data: error.toInfo() }),
});

/** The last frame of a stream whose credentials have ended. */
const credentialsFrame = (error: AppError): Frame => ({
  event: "credentials_ended",
  data: JSON.stringify({ event: "credentials_ended", data: error.toInfo() }),
});

/** Yields the frames to send, in batches, until `signal` aborts. */
export type Frames = (signal: AbortSignal) => AsyncIterable<readonly (Frame | LongFrame)[]>;

export interface StreamLimits {
  /** The maximum number of open event streams. */
  readonly streams: number;
  /** The silence after which a heartbeat is sent, in ms. */
  readonly heartbeatMs: number;
  /**
   * The time after which the connection of a client that reads nothing is cut, in ms. The client can reconnect with its
   * cursor.
   */
  readonly stallMs: number;
}

/** Browser code can see named heartbeats but not comments. A protocol may have its own heartbeat message. */
export type Heartbeat = "comment" | "named" | (() => Frame);

/**
 * How a stream ends if it ends before all of its frames have been sent. `frame` asks the client to reconnect. `cut`
 * drops the connection, for clients that treat a clean end as success. A function returns frames with the reason, for
 * clients that fail when a connection is cut.
 */
export type EarlyEnd = "frame" | "cut" | ((why: AppError) => readonly Frame[]);

/** The place that a response occupies among the open streams, until its connection closes. */
export interface StreamPlace {
  /** The id under which quotas count the place. */
  readonly id: string;
  /** Keeps a place that quotas have admitted until the connection closes. */
  keep(): void;
  /**
   * Sends frames until they end or the client disconnects, and returns which happened. Validate everything first. A
   * client whose key is revoked counts as disconnected. A client whose credentials expire reconnects with new ones.
   */
  send(frames: Frames, heartbeat: Heartbeat, earlyEnd?: EarlyEnd): Promise<"ended" | "left">;
}

export interface Streams {
  /** Aborts when the server shuts down, which ends the streams. */
  readonly closing: AbortSignal;
  /** The number of open streams. */
  readonly open: number;
  close(): void;
  /**
   * Reserves a place. Throws `unavailable` if all places are taken, or `limit_exceeded` if the tenant has reached its
   * share. Does not check quotas.
   */
  take(reply: FastifyReply): StreamPlace;
  /** Reserves a place if quotas admit it too, and sends frames. Throws `unavailable` or `limit_exceeded`. */
  send(
    reply: FastifyReply,
    frames: Frames,
    heartbeat: Heartbeat,
    earlyEnd?: EarlyEnd,
  ): Promise<"ended" | "left">;
}

/** Each tenant has a fair share of the places. */
export function createStreams(
  limits: StreamLimits,
  {
    quotas,
    credentials,
    unreadResponses,
    logger,
  }: {
    quotas: Quotas;
    credentials: Credentials;
    unreadResponses: Pick<UnreadResponses, "open">;
    logger: Pick<Logger, "warn">;
  },
  hasSeveralTenants: boolean,
): Streams {
  const closing = new AbortController();
  const onUnavailable = atMostEvery<AppError>(LOG_MS, (err, streams) =>
    logger.warn({ err, streams }, "event streams ended early: the store cannot be read"),
  );
  const shares = new Shares(sharedPlaces(limits.streams, hasSeveralTenants));

  const take = (reply: FastifyReply): StreamPlace => {
    const owner = ownerOf(reply.request);
    const unread = unreadResponses.open(reply);
    const giveBack = shares.takeOrRefuse(owner.tenant, { what: "event streams", setting: "limits.streams" });
    const held = { owner, thing: "streams", id: randomId() } as const;
    let hold: Hold | undefined;
    const disconnected = clientDisconnect(reply);
    const over = credentialsEnd(credentials, reply);
    const release = () => {
      giveBack();
      // A place that was admitted but not kept, because its run failed to start, must not count until it expires.
      if (hold) void hold.release();
      else void quotas.release(held.owner, held.thing, held.id).catch(() => {});
    };
    if (disconnected.aborted) release();
    else disconnected.addEventListener("abort", release, { once: true });
    return {
      id: held.id,
      keep() {
        hold = holdWhile(quotas, held);
        if (disconnected.aborted) void hold.release();
      },
      send: (frames, heartbeat, earlyEnd = "frame") =>
        sendFrames(reply, frames, {
          ...limits,
          ...{
            heartbeat,
            earlyEnd,
            left: disconnected,
            closing: closing.signal,
            over,
            unread,
            onUnavailable,
          },
        }),
    };
  };

  return {
    closing: closing.signal,
    get open() {
      return shares.used;
    },
    close: () => closing.abort(),
    take,
    async send(reply, frames, heartbeat, earlyEnd) {
      const place = take(reply);
      await admit(quotas, ownerOf(reply.request), { stream: place.id });
      place.keep();
      return place.send(frames, heartbeat, earlyEnd);
    },
  };
}

/** Returns a signal that aborts with the reason if the credentials of a request end before the response does. */
export function credentialsEnd(credentials: Credentials, { request, raw }: FastifyReply): AbortSignal {
  const over = new AbortController();
  const stop = credentials.watch(principalOf(request), (reason) => over.abort(reason));
  raw.once("close", stop);
  if (raw.destroyed || raw.closed) stop();
  return over.signal;
}

interface StreamOptions extends StreamLimits {
  readonly heartbeat: Heartbeat;
  readonly earlyEnd: EarlyEnd;
  /** Aborts when the client disconnects. */
  readonly left: AbortSignal;
  readonly closing: AbortSignal;
  /** Aborts with the reason when the credentials of the request end. */
  readonly over: AbortSignal;
  readonly unread: ReportUnread;
  /** Called when the store cannot be read and the stream has therefore ended early. */
  readonly onUnavailable: (error: AppError) => void;
}

async function sendFrames(
  reply: FastifyReply,
  read: Frames,
  options: StreamOptions,
): Promise<"ended" | "left"> {
  const { raw } = reply;
  const { left, closing, over, earlyEnd, unread } = options;
  // Aborts when the client has disconnected or may no longer read.
  const whenDenied = linkedTo(left, over);
  const denied = whenDenied.signal;
  const stop = linkedTo(denied, closing);

  bodyIsDone(reply.request);
  if (reply.request.headers.connection?.toLowerCase() === "close") reply.header("connection", "close");
  reply.sse.sendHeaders();
  // The headers are sent in one packet with events that are ready at once, but do not wait for later events.
  const flush = setImmediate(() => raw.flushHeaders());
  let isFirst = true;
  let isBetweenEvents = true;
  const heartbeat = setInterval(() => {
    if (isBetweenEvents && !raw.writableNeedDrain) beat(reply, options.heartbeat);
  }, options.heartbeatMs);
  // Stays active until the connection closes, because the last frames may have to wait for the client too.
  cutWhenStalled(raw, options.stallMs);

  try {
    for await (const frames of read(stop.signal)) {
      // Empty batches do not flush headers or reset the heartbeat.
      if (frames.length === 0) continue;
      clearImmediate(flush);
      heartbeat.refresh();
      for (const [index, frame] of frames.entries()) {
        isBetweenEvents = false;
        if (isShort(frame)) send(reply, frame);
        // A cut event must be the last data on its connection.
        else if (!(await writeInPieces(reply, frame, { denied, unread }))) raw.destroy();
        isBetweenEvents = true;
        if (raw.writableNeedDrain) {
          unread(raw.writableLength + lengthOf(frames.slice(index + 1)));
          await drained(raw, denied);
          unread(0);
        }
        if (denied.aborted) return endOfDenied();
      }
      // Node would send them at the end of this tick of the event loop, possibly after the request to the model.
      if (isFirst) raw.socket?.uncork();
      isFirst = false;
    }
    if (denied.aborted) return endOfDenied();
    if (closing.aborted) endEarly(SHUTDOWN, shuttingDown());
    return "ended";
  } catch (error) {
    // A stream of Skein's own frames simply ends, because its reader can reconnect with a cursor.
    const why = AppError.from(error);
    if (earlyEnd !== "frame") endEarly(SHUTDOWN, why);
    if (why.code !== "unavailable") throw error;
    options.onUnavailable(why);
    return "ended";
  } finally {
    clearImmediate(flush);
    clearInterval(heartbeat);
    whenDenied.detach();
    stop.detach();
    reply.sse.close();
  }

  function endOfDenied(): "ended" | "left" {
    if (left.aborted) return "left";
    endEarly(credentialsFrame(over.reason), over.reason);
    return isRevoked(over) ? "left" : "ended";
  }

  function endEarly(frame: Frame, why: AppError): void {
    if (earlyEnd === "cut") raw.destroy();
    else for (const each of earlyEnd === "frame" ? [frame] : earlyEnd(why)) send(reply, each);
  }
}

const shuttingDown = () => new AppError("shutting_down", "The server is shutting down. The run is kept.");

/**
 * Does not await the plugin: its promise settles when the socket has drained, and never settles if the client
 * disconnects first. It rejects after a disconnect, which `clientDisconnect` reports.
 */
function send({ sse }: FastifyReply, frame: Frame): void {
  sse.send(frame).catch(() => {});
}

/** The plugin cannot send comments, and its heartbeats are not tied to silence. */
function beat(reply: FastifyReply, kind: StreamOptions["heartbeat"]): void {
  if (typeof kind === "function") send(reply, kind());
  else if (kind === "named") send(reply, { event: "heartbeat", data: "{}" });
  else reply.raw.write(": heartbeat\n\n");
}

const isShort = (frame: Frame | LongFrame): frame is Frame =>
  typeof frame.data === "string" && !isLong(frame.data);

/**
 * Writes a long event piece by piece, so each piece counts as progress and other work gets its turn. The plugin would
 * write it at once. Returns false if `denied` aborted before the last piece.
 */
async function writeInPieces(
  { raw, request }: FastifyReply,
  { id, event, data }: Frame | LongFrame,
  { denied, unread }: { denied: AbortSignal; unread: ReportUnread },
): Promise<boolean> {
  const { tenant } = ownerOf(request);
  const head = `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}`;
  let proceed = () => {};
  const onDenied = () => proceed();
  denied.addEventListener("abort", onDenied);
  let text = `${head}data: `;
  const isWhole = typeof data === "string";
  let left = isWhole ? Buffer.byteLength(data) : data.length;
  try {
    for (const part of isWhole ? cut(data) : data.parts) {
      text += part;
      left -= isWhole ? Buffer.byteLength(part) : part.length;
      if (text.length < TURN_CHARS) continue;
      if (!(await write(text))) return false;
      text = "";
      await ownTick(tenant);
    }
    return await write(`${text}\n\n`);
  } finally {
    denied.removeEventListener("abort", onDenied);
  }

  async function write(all: string): Promise<boolean> {
    const bytes = Buffer.from(all);
    const rest = Math.max(0, left);
    for (const piece of counted(piecesOf(bytes), bytes.length, (waiting) => unread(waiting + rest))) {
      if (denied.aborted) return false;
      await new Promise<void>((resolve) => {
        proceed = resolve;
        raw.write(piece, () => resolve());
      });
    }
    return true;
  }
}

/** Cuts a text into parts without splitting a surrogate pair. */
function* cut(text: string): Generator<string, void, void> {
  for (let from = 0; from < text.length; ) {
    const to = from + TURN_CHARS;
    const end = /[\uD800-\uDBFF]/.test(text.charAt(to - 1)) ? to + 1 : to;
    yield text.slice(from, end);
    from = end;
  }
}

const lengthOf = (frames: readonly (Frame | LongFrame)[]) =>
  frames.reduce((sum, { data }) => sum + data.length, 0);

/** Resolves when the socket accepts more data or `denied` aborts. */
async function drained(raw: ServerResponse, denied: AbortSignal): Promise<void> {
  try {
    await once(raw, "drain", { signal: denied });
  } catch (error) {
    if (!denied.aborted) throw error;
  }
}
