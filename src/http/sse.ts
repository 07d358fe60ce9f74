// Server-Sent Events. A viewer takes what its socket takes, and what is to be sent is pulled only then, so a slow
// one costs a bounded buffer and delays nobody.

import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import type { AppError } from "../core/errors.ts";
import { gone } from "./gone.ts";
import { cutWhenStalled, isLong, piecesOf } from "./slow-readers.ts";

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

const HEARTBEAT = { comment: ": heartbeat\n\n", named: "event: heartbeat\ndata: {}\n\n" };

/** Whatever it was about goes on once the server is back: come back. */
const SHUTDOWN = "event: server_shutdown\ndata: {}\n\n";

/** What the viewer has not seen is gone: it reads anew what it follows, and goes on with what comes now. */
export const resetFrame = (error: AppError) =>
  `event: stream_reset\ndata: ${JSON.stringify({ event: "stream_reset", data: error.toInfo() })}\n\n`;

/** What is to be sent, one frame or several at a time, until `signal` aborts. */
export type Frames = (signal: AbortSignal) => AsyncIterable<string>;

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
    if (isBetweenEvents && !raw.writableNeedDrain) raw.write(HEARTBEAT[options.heartbeat]);
  }, options.heartbeatMs);
  const stopLooking = cutWhenStalled(raw, options.stallMs);

  try {
    for await (const frames of read(stop)) {
      clearImmediate(flush);
      heartbeat.refresh();
      if (isLong(frames)) {
        isBetweenEvents = false;
        await writeInPieces(raw, frames, left);
        isBetweenEvents = true;
      } else if (!raw.write(frames)) await drained(raw, left);
      if (left.aborted) return "left";
    }
    if (options.closing.aborted && !left.aborted) raw.write(SHUTDOWN);
    return left.aborted ? "left" : "ended";
  } finally {
    clearImmediate(flush);
    clearInterval(heartbeat);
    stopLooking();
    reply.sse.close();
  }
}

/** Each piece once the one before it is out: a viewer that takes one piece has made progress. */
async function writeInPieces(raw: ServerResponse, text: string, left: AbortSignal): Promise<void> {
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
