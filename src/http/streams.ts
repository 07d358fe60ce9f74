// The event streams that are open, and how many there may be.

import type { FastifyReply } from "fastify";
import { AppError } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { RunRecord } from "../core/stores.ts";
import type { HttpServices } from "./services.ts";
import { type StreamOptions, sendEvents } from "./sse.ts";

export function createStreams({ runs, limits }: HttpServices) {
  const closing = new AbortController();
  let open = 0;
  return {
    closing: closing.signal,

    /** Ends what is still open; nothing more is to be expected from the runs. */
    close: () => closing.abort(),

    /** Follows a run on `reply`. Throws `unavailable`, before anything is sent, when too many do. */
    async send(
      reply: FastifyReply,
      owner: Owner,
      run: RunRecord,
      after: number,
      heartbeat: StreamOptions["heartbeat"],
    ): Promise<"ended" | "left"> {
      if (open >= limits.streams)
        throw new AppError("unavailable", `All ${limits.streams} event streams of this server are taken.`);
      open++;
      try {
        const { heartbeatMs, stallMs } = limits;
        const read = (signal: AbortSignal) => runs.events(owner, run, after, signal);
        return await sendEvents(reply, run.id, read, {
          heartbeatMs,
          stallMs,
          heartbeat,
          closing: closing.signal,
        });
      } finally {
        open--;
      }
    },
  };
}
