// Server-Sent Events. A viewer takes what its socket takes, and what is to be sent is pulled only then, so a slow
// one costs a bounded buffer and delays nobody.

import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { AppError } from "../core/errors.ts";
import { randomId } from "../lib/random-id.ts";
import { keep } from "../quotas/holds.ts";
import type { Quotas } from "../quotas/index.ts";
import { ownerOf } from "./auth/guard.ts";
import { cutWhenStalled, gone, isLong, piecesOf } from "./client-disconnect.ts";

export interface StreamOptions {
  /** Silence after which a sign of life is sent, in ms. */
  readonly heartbeatMs: number;
  /** How long a viewer may take nothing before its connection is cut, in ms. It can come back to its cursor. */
  readonly stallMs: number;
  /** Named heartbeats are visible to browser code, comments are not. */
  readonly heartbeat: "comment" | "named";
  /** Aborted when the server ends: streams that do not end by themselves are then closed. */
  readonly closing: AbortSignal;
}

/** One event of a stream. `data` is JSON, on one line. */
export interface Frame {
  readonly id?: string;
  readonly event: string;
  readonly data: string;
}

/** Whatever it was about goes on once the server is back: come back. */
const SHUTDOWN: Frame = { event: "server_shutdown", data: "{}" };

/** What the viewer has not seen is gone: it reads anew what it follows, and goes on with what comes now. */
export const resetFrame = (error: AppError): Frame => ({
  event: "stream_reset",
  data: JSON.stringify({ event: "stream_reset", data: error.toInfo() }),
});

/** What is to be sent, one frame or several at a time, until `signal` aborts. */
export type Frames = (signal: AbortSignal) => AsyncIterable<readonly Frame[]>;

/**
 * Sends frames until they end or the viewer leaves; tells which. The caller has validated everything: from here on
 * there is no status to change. The reply is ended here.
 */
export async function sendFrames(
  reply: FastifyReply,
  read: Frames,
  options: StreamOptions,
): Promise<"ended" | "left"> {
  const { raw } = reply;
  const left = gone(reply);
  const stop = AbortSignal.any([left, options.closing]);

  if (reply.request.headers.connection?.toLowerCase() === "close") reply.header("connection", "close");
  reply.sse.sendHeaders();
  // The head travels with the first events if they come at once, and does not wait for them if not.
  const flush = setImmediate(() => raw.flushHeaders());
  let isBetweenEvents = true;
  const heartbeat = setInterval(() => {
    if (isBetweenEvents && !raw.writableNeedDrain) beat(reply, options.heartbeat);
  }, options.heartbeatMs);
  const stopLooking = cutWhenStalled(raw, options.stallMs);

  try {
    for await (const frames of read(stop)) {
      clearImmediate(flush);
      heartbeat.refresh();
      for (const frame of frames) {
        isBetweenEvents = false;
        if (isLong(frame.data)) await writeInPieces(raw, frame, left);
        else send(reply, frame);
        isBetweenEvents = true;
        if (raw.writableNeedDrain) await drained(raw, left);
        if (left.aborted) return "left";
      }
    }
    if (options.closing.aborted && !left.aborted) send(reply, SHUTDOWN);
    return left.aborted ? "left" : "ended";
  } finally {
    clearImmediate(flush);
    clearInterval(heartbeat);
    stopLooking();
    reply.sse.close();
  }
}

/**
 * The plugin's promise settles when the socket has drained, and never if the viewer leaves before that, so it is not
 * awaited. It rejects for a viewer that has left, which `gone` reports.
 */
function send({ sse }: FastifyReply, frame: Frame): void {
  sse.send(frame).catch(() => {});
}

/** The plugin sends no comments, and its own heartbeats come whether there is silence or not. */
function beat(reply: FastifyReply, kind: StreamOptions["heartbeat"]): void {
  if (kind === "named") send(reply, { event: "heartbeat", data: "{}" });
  else reply.raw.write(": heartbeat\n\n");
}

/**
 * Writes each piece after the one before it has been sent, so that every piece counts as progress. The plugin would write
 * the whole event at once.
 */
async function writeInPieces(
  raw: ServerResponse,
  { id, event, data }: Frame,
  left: AbortSignal,
): Promise<void> {
  const text = `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${data}\n\n`;
  let proceed = () => {};
  const onLeft = () => proceed();
  left.addEventListener("abort", onLeft);
  for (const piece of piecesOf(text)) {
    if (left.aborted) break;
    await new Promise<void>((resolve) => {
      proceed = resolve;
      raw.write(piece, () => resolve());
    });
  }
  left.removeEventListener("abort", onLeft);
}

/** Resolves when the socket takes more, or when the viewer is gone. */
async function drained(raw: ServerResponse, left: AbortSignal): Promise<void> {
  try {
    await once(raw, "drain", { signal: left });
  } catch (error) {
    if (!left.aborted) throw error;
  }
}

// The event streams that are open, and how many there may be.

export interface StreamLimits {
  /** Event streams at once. */
  readonly streams: number;
  readonly heartbeatMs: number;
  readonly stallMs: number;
}

export interface Streams {
  /** Aborted when the server ends. */
  readonly closing: AbortSignal;
  /** Ends what is still open; nothing more is to be expected from the runs. */
  close(): void;
  /**
   * Throws `unavailable` when too many are open, `limit_exceeded` when too many of its owner are: to be asked before a
   * run is started for one more. Until `reply` is over it has its place.
   */
  assertRoom(reply: FastifyReply): Promise<void>;
  /** Sends frames on `reply`. Throws as `assertRoom` does, before anything is sent. */
  send(reply: FastifyReply, frames: Frames, heartbeat: StreamOptions["heartbeat"]): Promise<"ended" | "left">;
}

export function createStreams({ heartbeatMs, stallMs, streams }: StreamLimits, quotas: Quotas): Streams {
  const closing = new AbortController();
  let open = 0;
  const assertRoom = async (reply: FastifyReply) => {
    if (open >= streams)
      throw new AppError("unavailable", `All ${streams} event streams of this server are taken.`);
    await holdStream(quotas, reply);
  };
  return {
    assertRoom,
    closing: closing.signal,
    close: () => closing.abort(),
    async send(reply, frames, heartbeat) {
      await assertRoom(reply);
      open++;
      try {
        return await sendFrames(reply, frames, { heartbeatMs, stallMs, heartbeat, closing: closing.signal });
      } finally {
        open--;
      }
    },
  };
}

// The quotas of whoever sends a request: how many requests a minute, and how many event streams at once.
const streaming = new WeakSet<FastifyReply>();

/** From now on until its connection is done with it the reply counts as a stream. Throws `limit_exceeded`. */
export async function holdStream(quotas: Quotas, reply: FastifyReply): Promise<void> {
  if (streaming.has(reply)) return;
  const held = { owner: ownerOf(reply.request), thing: "streams", id: randomId() } as const;
  await quotas.hold(held.owner, held.thing, held.id);
  streaming.add(reply);
  const kept = keep(quotas, held);
  // One that left meanwhile does not say so again.
  if (reply.raw.closed || reply.raw.destroyed) await kept.release();
  else reply.raw.once("close", () => void kept.release());
}
