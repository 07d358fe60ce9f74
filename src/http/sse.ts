// Server-Sent Events. A viewer is a cursor, not a queue: it takes what its socket takes and reads on from the
// log, so a slow one costs a bounded buffer and delays nobody.

import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { AppError } from "../core/errors.ts";
import type { LogEntry } from "../core/stores.ts";
import { gone } from "./gone.ts";

export interface StreamOptions {
  /** Silence after which a sign of life is sent, in ms. */
  readonly heartbeatMs: number;
  /** How long a viewer may take nothing before its connection is cut, in ms. It can come back to its cursor. */
  readonly stallMs: number;
  /** Named heartbeats are visible to browser code, comments are not. */
  readonly heartbeat: "comment" | "named";
  /** Aborted when the server ends: streams of runs that it does not end itself are then closed. */
  readonly closing: AbortSignal;
}

const HEARTBEAT = { comment: ": heartbeat\n\n", named: "event: heartbeat\ndata: {}\n\n" };

/** The run goes on, or begins, once the server is back: come back to your cursor. */
const SHUTDOWN = "event: server_shutdown\ndata: {}\n\n";

function framesOf(runId: string, entries: readonly LogEntry[]): string {
  let frames = "";
  for (const entry of entries) frames += frame(runId, entry);
  return frames;
}

/** What the viewer has not seen is gone: it reads the thread's messages, and goes on with what comes now. */
const resetFrame = (error: AppError) =>
  `event: stream_reset\ndata: ${JSON.stringify({ event: "stream_reset", data: error.toInfo() })}\n\n`;

/** The cursor a viewer comes back with: opaque to it, `<run>:<epoch>-<seq>` to us. */
export function frame(runId: string, { epoch, seq, event, json }: LogEntry): string {
  return `id: ${runId}:${epoch}-${seq}\nevent: ${event}\ndata: ${json}\n\n`;
}

/**
 * Sends entries until they end or the viewer leaves; tells which. An error among them is a gap: entries that are
 * no longer kept. The caller has validated everything: from here on there is no status to change. The reply is
 * ended here; `read` is told by its signal when to stop.
 */
export async function sendEvents(
  reply: FastifyReply,
  runId: string,
  read: (signal: AbortSignal) => AsyncIterable<readonly LogEntry[] | AppError>,
  options: StreamOptions,
): Promise<"ended" | "left"> {
  const { raw } = reply;
  const left = gone(reply);
  const stop = AbortSignal.any([left, options.closing]);

  if (reply.request.headers.connection?.toLowerCase() === "close") reply.header("connection", "close");
  reply.sse.sendHeaders();
  // The head travels with the first events if they come at once, and does not wait for them if not.
  const flush = setImmediate(() => raw.flushHeaders());
  const heartbeat = setInterval(() => {
    if (!raw.writableNeedDrain) raw.write(HEARTBEAT[options.heartbeat]);
  }, options.heartbeatMs);

  try {
    for await (const item of read(stop)) {
      const frames = item instanceof AppError ? resetFrame(item) : framesOf(runId, item);
      clearImmediate(flush);
      heartbeat.refresh();
      if (!raw.write(frames)) await drained(raw, options.stallMs, left);
      if (left.aborted) return "left";
    }
    if (options.closing.aborted && !left.aborted) raw.write(SHUTDOWN);
    return left.aborted ? "left" : "ended";
  } finally {
    clearImmediate(flush);
    clearInterval(heartbeat);
    reply.sse.close();
  }
}

/** Resolves when the socket takes more, or when the viewer is gone; cuts one that takes nothing for too long. */
async function drained(raw: ServerResponse, stallMs: number, left: AbortSignal): Promise<void> {
  const stalled = setTimeout(() => raw.destroy(), stallMs);
  try {
    await once(raw, "drain", { signal: left });
  } catch (error) {
    if (!left.aborted) throw error;
  } finally {
    clearTimeout(stalled);
  }
}
