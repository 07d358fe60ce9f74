// The event streams that are open, and how many there may be.

import type { FastifyReply } from "fastify";
import { AppError } from "../core/errors.ts";
import type { HttpLimits } from "./services.ts";
import { type Frames, type StreamOptions, sendFrames } from "./sse.ts";

export interface Streams {
  /** Aborted when the server ends. */
  readonly closing: AbortSignal;
  /** Ends what is still open; nothing more is to be expected from the runs. */
  close(): void;
  /** Throws `unavailable` when too many are open: to be asked before a run is started for one more. */
  assertRoom(): void;
  /** Sends frames on `reply`. Throws `unavailable`, before anything is sent, when too many are open. */
  send(reply: FastifyReply, frames: Frames, heartbeat: StreamOptions["heartbeat"]): Promise<"ended" | "left">;
}

export function createStreams({ heartbeatMs, stallMs, streams }: HttpLimits): Streams {
  const closing = new AbortController();
  let open = 0;
  const assertRoom = () => {
    if (open >= streams)
      throw new AppError("unavailable", `All ${streams} event streams of this server are taken.`);
  };
  return {
    assertRoom,
    closing: closing.signal,
    close: () => closing.abort(),
    async send(reply, frames, heartbeat) {
      assertRoom();
      open++;
      try {
        return await sendFrames(reply, frames, { heartbeatMs, stallMs, heartbeat, closing: closing.signal });
      } finally {
        open--;
      }
    },
  };
}
