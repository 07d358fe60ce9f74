// The event streams that are open, and how many there may be.

import type { FastifyReply } from "fastify";
import { AppError } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { LogEntry, RunRecord } from "../core/stores.ts";
import type { RunManager } from "../runs/manager.ts";
import type { HttpServices } from "./services.ts";
import { type StreamOptions, sendEvents } from "./sse.ts";

interface View {
  readonly owner: Owner;
  readonly run: RunRecord;
  /** The number of the event that was seen last. */
  readonly after: number;
}

export interface Streams {
  /** Aborted when the server ends. */
  readonly closing: AbortSignal;
  /** Ends what is still open; nothing more is to be expected from the runs. */
  close(): void;
  /** Throws `unavailable` when too many are open: to be asked before a run is started for one more. */
  assertRoom(): void;
  /** Follows a run on `reply`. Throws `unavailable`, before anything is sent, when too many do. */
  send(reply: FastifyReply, view: View, heartbeat: StreamOptions["heartbeat"]): Promise<"ended" | "left">;
}

export function createStreams({ runs, limits }: HttpServices): Streams {
  const closing = new AbortController();
  const { heartbeatMs, stallMs } = limits;
  let open = 0;
  const assertRoom = () => {
    if (open >= limits.streams)
      throw new AppError("unavailable", `All ${limits.streams} event streams of this server are taken.`);
  };
  return {
    assertRoom,
    closing: closing.signal,
    close: () => closing.abort(),
    async send(reply, { owner, run, after }, heartbeat) {
      assertRoom();
      open++;
      try {
        const read = (signal: AbortSignal) => withGaps(runs, { owner, run, after }, signal);
        const options = { heartbeatMs, stallMs, heartbeat, closing: closing.signal };
        return await sendEvents(reply, run.id, read, options);
      } finally {
        open--;
      }
    },
  };
}

/** The entries after `after`. Where some are no longer kept: the error that says so, then on with what is. */
async function* withGaps(
  runs: RunManager,
  { owner, run, after }: View,
  signal: AbortSignal,
): AsyncGenerator<readonly LogEntry[] | AppError, void, void> {
  for (let cursor = after; ; ) {
    try {
      for await (const batch of runs.events(owner, run, cursor, signal)) {
        yield batch;
        cursor = batch.at(-1)?.seq ?? cursor;
      }
      return;
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== "events_expired") throw error;
      yield error;
      const { first, last } = await runs.bounds(owner, run);
      if (last <= cursor) return;
      cursor = Math.max(cursor, first - 1);
    }
  }
}
