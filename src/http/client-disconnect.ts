// Whether a client is still there.

import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply } from "fastify";

/** Made once: an error of its own for every connection costs more than the rest of its end. */
const GONE = new Error("The client has left.");

/** Aborts when the connection of `reply` ends, early or after the answer; at once when it has ended already. */
export function gone({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  raw.once("close", () => controller.abort(GONE));
  if (raw.destroyed) controller.abort(GONE);
  return controller.signal;
}

/** Whether that is why something was given up: nobody waits for the answer, and nothing is wrong. */
export const isGone = (error: unknown) => error === GONE;

// Clients that read an answer slowly, and clients that stop reading it. A long answer is written in pieces, so that the
// progress of a slow client can be seen.
/** A client makes progress through a long text in steps of this size. */
const PIECE_BYTES = 16 * 1024;
/** Up to this length a text is one write, as it would fit into a socket's buffer. */
const LONG_BYTES = 4 * PIECE_BYTES;
/** How often progress is checked within the stall time. */
const LOOKS = 4;

export function* piecesOf(text: string | Buffer): Generator<Buffer, void, void> {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  for (let start = 0; start < bytes.length; start += PIECE_BYTES)
    yield bytes.subarray(start, start + PIECE_BYTES);
}

/** Whether `text` is to be written in pieces. */
export const isLong = (text: string) => text.length > LONG_BYTES;

/**
 * Destroys the connection of `raw` once data has waited for `stallMs`, or up to a quarter longer, and the client has read
 * none of it. Stops when the connection closes, or when the returned function is called.
 */
export function cutWhenStalled(raw: ServerResponse, stallMs: number): () => void {
  const { socket } = raw;
  // A response whose connection has ended already does not close once more.
  if (!socket || raw.destroyed) return () => {};
  let still = 0;
  let [written, waiting] = [0, 0];
  const look = setInterval(() => {
    const { bytesWritten, writableLength } = socket;
    const isStill = writableLength > 0 && bytesWritten === written && writableLength === waiting;
    [written, waiting] = [bytesWritten, writableLength];
    still = isStill ? still + 1 : 0;
    if (still === LOOKS) socket.destroy();
  }, stallMs / LOOKS);
  const stop = () => clearInterval(look);
  raw.once("close", stop);
  return stop;
}

/** The same for all long answers except event streams. */
export function boundAnswers(server: FastifyInstance, stallMs: number): void {
  server.addHook("onSend", async (_request, reply, payload: unknown) => {
    const isWhole = typeof payload === "string" || Buffer.isBuffer(payload);
    const length = isWhole ? Buffer.byteLength(payload) : Number.POSITIVE_INFINITY;
    if (payload === null || payload === undefined || length <= LONG_BYTES) return payload;
    cutWhenStalled(reply.raw, stallMs);
    if (!isWhole) return payload;
    reply.header("content-length", length);
    return Readable.from(piecesOf(payload), { objectMode: false, highWaterMark: PIECE_BYTES });
  });
}
