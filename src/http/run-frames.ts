// A run as a viewer gets it: its entries as frames. A viewer is a cursor, not a queue: it reads on from the log.

import { hasCode } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { RunRecord } from "../core/records.ts";
import type { Cursor, LogEntry } from "../core/stores.ts";
import type { Following } from "../runs/following.ts";
import type { RunManager } from "../runs/manager.ts";
import { type Frame, type Frames, resetFrame } from "./sse.ts";

interface View {
  readonly owner: Owner;
  readonly run: RunRecord;
  /** The event that was seen last. */
  readonly after: Cursor;
}

/** The entries after `after`. Where entries were dropped or lost, a reset frame comes first, then what is still there. */
export function runFrames(runs: RunManager, { owner, run, after }: View): Frames {
  return async function* (signal) {
    for (let cursor = after; ; ) {
      try {
        for await (const batch of runs.events(owner, run, cursor, signal)) {
          yield framesOf(run.id, batch);
          cursor = batch.at(-1) ?? cursor;
        }
        return;
      } catch (error) {
        if (!hasCode(error, "events_expired")) throw error;
        yield [resetFrame(error)];
        const { last } = await runs.bounds(owner, run);
        if (last === 0) return;
        cursor = { seq: await runs.seen(owner, run, cursor) };
      }
    }
  };
}

/** The same of a thread, run after run. */
export function threadFrames(runs: RunManager, thread: Following): Frames {
  return async function* (signal) {
    for await (const { run, after } of runs.follow(thread, signal))
      yield* runFrames(runs, { owner: thread.owner, run, after })(signal);
  };
}

const framesOf = (runId: string, entries: readonly LogEntry[]) => entries.map((entry) => frame(runId, entry));

/** The id is the cursor a viewer comes back with: opaque to it, `<run>:<epoch>-<seq>` to us. */
const frame = (runId: string, { epoch, seq, event, json }: LogEntry): Frame => ({
  id: `${runId}:${epoch}-${seq}`,
  event,
  data: json,
});
