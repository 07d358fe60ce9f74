// Detects clients that disconnect and clients that stop reading. The server writes long responses in pieces, so it can
// see a slow client's progress.

import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { ReportUnread, UnreadResponses } from "./unread-responses.ts";

/** Shared, because creating an Error per connection is expensive. */
const DISCONNECTED = new Error("The client has disconnected.");

/**
 * Returns a signal that aborts when the connection of `reply` closes, before or after the response. Aborts at once if
 * the connection is already closed.
 */
export function clientDisconnect({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  raw.once("close", () => controller.abort(DISCONNECTED));
  if (raw.destroyed || raw.closed) controller.abort(DISCONNECTED);
  return controller.signal;
}

/** Returns true if work was aborted because its client disconnected. This is not a failure. */
export const isClientDisconnect = (error: unknown) => error === DISCONNECTED;

/** The size of the pieces in which a client reads a long text. */
const PIECE_BYTES = 16 * 1024;
/** A shorter text is a single write, because it fits into a socket's buffer. */
const LONG_BYTES = 4 * PIECE_BYTES;
/** The number of progress checks within the stall time. */
const CHECKS = 4;

export function* piecesOf(text: string | Buffer): Generator<Buffer, void, void> {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  for (let start = 0; start < bytes.length; start += PIECE_BYTES)
    yield bytes.subarray(start, start + PIECE_BYTES);
}

/**
 * Yields `pieces`, which have a total of `length` bytes. Reports the number of remaining bytes to `unread` each time
 * the caller reads a piece.
 */
export function* counted(
  pieces: Iterable<Buffer>,
  length: number,
  unread: ReportUnread,
): Generator<Buffer, void, void> {
  let left = length;
  unread(left);
  for (const piece of pieces) {
    yield piece;
    left -= piece.length;
    unread(left);
  }
}

/** Returns true if the length of `text` requires writing it in pieces. */
export const isLong = (text: string) => text.length > LONG_BYTES;

/**
 * Destroys the connection if data has waited for `stallMs`, or up to a quarter longer, and the client has read none of
 * it. Stops when the connection closes or the response has been sent.
 */
export function cutWhenStalled(raw: ServerResponse, stallMs: number): void {
  const { socket } = raw;
  // A response whose connection is closed emits no further `close` event.
  if (!socket || raw.destroyed) return;
  let stalled = 0;
  let [written, waiting] = [0, 0];
  const timer = setInterval(() => {
    const { bytesWritten, writableLength } = socket;
    const isStalled = writableLength > 0 && bytesWritten === written && writableLength === waiting;
    [written, waiting] = [bytesWritten, writableLength];
    stalled = isStalled ? stalled + 1 : 0;
    if (stalled === CHECKS) socket.destroy();
  }, stallMs / CHECKS);
  raw.once("close", () => clearInterval(timer));
}

/**
 * Cuts the stalled connections of all long responses except event streams, and counts the unsent bytes of responses
 * that are sent whole.
 */
export function cutStalledResponses(
  server: FastifyInstance,
  stallMs: number,
  unreadResponses: Pick<UnreadResponses, "open">,
): void {
  server.addHook("onSend", async (_request, reply, payload: unknown) => {
    const isWhole = typeof payload === "string" || Buffer.isBuffer(payload);
    const length = isWhole ? Buffer.byteLength(payload) : Number.POSITIVE_INFINITY;
    if (payload === null || payload === undefined || length <= LONG_BYTES) return payload;
    const unread = isWhole ? unreadResponses.open(reply) : undefined;
    cutWhenStalled(reply.raw, stallMs);
    if (!isWhole || !unread) return payload;
    reply.header("content-length", length);
    const pieces = counted(piecesOf(payload), length, unread);
    return Readable.from(pieces, { objectMode: false, highWaterMark: PIECE_BYTES });
  });
}
