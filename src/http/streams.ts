// The event streams that are open, and how many there may be.

import type { FastifyReply } from "fastify";
import { AppError } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { RunRecord } from "../core/stores.ts";
import type { HttpServices } from "./services.ts";
import { type StreamOptions, sendEvents } from "./sse.ts";

export interface Streams {
  /** Aborted when the server ends. */
  readonly closing: AbortSignal;
  /** Ends what is still open; nothing more is to be expected from the runs. */
  close(): void;
  /** Follows a run on `reply`. Throws `unavailable`, before anything is sent, when too many do. */
  send(
    reply: FastifyReply,
    view: { owner: Owner; run: RunRecord; after: number },
    heartbeat: StreamOptions["heartbeat"],
  ): Promise<"ended" | "left">;
}

export function createStreams({ runs, limits }: HttpServices): Streams {
  const closing = new AbortController();
  const { heartbeatMs, stallMs } = limits;
  let open = 0;
  return {
    closing: closing.signal,
    close: () => closing.abort(),
    async send(reply, { owner, run, after }, heartbeat) {
      if (open >= limits.streams)
        throw new AppError("unavailable", `All ${limits.streams} event streams of this server are taken.`);
      open++;
      try {
        const read = (signal: AbortSignal) => runs.events(owner, run, after, signal);
        const options = { heartbeatMs, stallMs, heartbeat, closing: closing.signal };
        return await sendEvents(reply, run.id, read, options);
      } finally {
        open--;
      }
    },
  };
}
