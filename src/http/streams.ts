// The event streams that are open, and how many there may be.

import type { FastifyReply } from "fastify";
import { AppError } from "../core/errors.ts";
import type { Quotas } from "../quotas/index.ts";
import { holdStream } from "./quotas.ts";
import { type Frames, type StreamOptions, sendFrames } from "./sse.ts";

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
