// The frames of a run, with their ids. Every reader folds from the run's first event and skips the frames up to the id
// of its last frame.

import { AppError, hasCode } from "../../agent/core/errors.ts";
import { unanswered } from "../../agent/core/message.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import { storedEvent } from "../../agent/core/stored-json.ts";
import type { Stores } from "../../agent/core/stores.ts";
import { keyOf } from "../../engine/runs/control.ts";
import { openOn } from "../../engine/runs/start.ts";
import { mapInTicks } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Frame, Frames, LongFrame } from "../../server/http/sse.ts";
import type { StreamModes } from "./modes.ts";
import { asItIs, endOf, type InitialThread, type LangGraphFrame, project, textOf } from "./table.ts";

/** Identifies a frame of a run: frame number `k` for its event `seq`. */
export interface FrameCursor {
  readonly epoch: number;
  readonly seq: number;
  readonly k: number;
}

const START: FrameCursor = { epoch: 0, seq: 0, k: -1 };
const CURSOR = /^(?<run>[A-Za-z0-9_-]{1,128}):(?<epoch>\d{1,9})-(?<seq>\d{1,9})\.(?<k>\d{1,9})$/;

/**
 * Returns the cursor in a frame's id, or the start if there is none. Throws `invalid_request` for a frame of another
 * run.
 */
export function cursorIn(id: string | undefined, run: RunRecord): FrameCursor {
  if (id === undefined || id === "" || id === "-1") return START;
  const parts = CURSOR.exec(id)?.groups;
  if (parts?.run !== run.id)
    throw new AppError(
      "invalid_request",
      "Last-Event-ID: must be the id of an event of this run. Send the id of the last event that you received, or `-1`.",
    );
  return { epoch: Number(parts.epoch), seq: Number(parts.seq), k: Number(parts.k) };
}

interface Reader extends StreamModes {
  readonly owner: Owner;
  readonly run: RunRecord;
  readonly after: FrameCursor;
}

/**
 * Yields the frames after the cursor, until the run ends. If events are no longer stored, yields the current thread
 * instead.
 */
export function runFrames(stores: Stores, { owner, run, after, ...modes }: Reader): Frames {
  const key = keyOf(owner, run);
  return async function* (signal) {
    const seen = await seenBy(stores, { owner, run, after });
    const framesOf = (shown: readonly LangGraphFrame[], epoch: number, seq: number): (Frame | LongFrame)[] =>
      shown.flatMap(({ event, text }, k) =>
        seq < seen.seq || (seq === seen.seq && k <= seen.k)
          ? []
          : [longOrShort({ id: `${run.id}:${epoch}-${seq}.${k}`, event }, text())],
      );
    let fold: ReturnType<typeof project> | undefined;
    for (let from = 0; ; ) {
      try {
        for await (const batch of stores.events.read(key, from, signal)) {
          fold ??= project(modes, await historyOf(stores, owner, run, modes));
          for (const entry of batch) {
            const { epoch, seq } = entry;
            const frames = framesOf(fold(storedEvent(entry), run), epoch, seq);
            if (frames.length > 0) yield frames;
            from = seq;
          }
        }
        return;
      } catch (error) {
        if (!hasCode(error, "events_expired")) throw error;
      }
      const { last } = await stores.events.bounds(key);
      const now = (await stores.runs.get(owner, run.thread_id, run.id)) ?? run;
      const history = await historyOf(stores, owner, run, modes);
      const open = isSettled(now.status) ? await openOn(stores.threads, owner, run.thread_id) : [];
      yield framesOf(asItIs(modes, { history, open, run: now }), 0, last);
      if (isSettled(now.status)) {
        yield framesOf(endOf(now), 0, last + 1);
        return;
      }
      fold = project(modes, history);
      from = last;
    }
  };
}

const longOrShort = (
  head: Omit<Frame, "data">,
  data: Frame["data"] | LongFrame["data"],
): Frame | LongFrame => (typeof data === "string" ? { ...head, data } : { ...head, data });

/** Returns the reader's position in the current log. An entry that was lost or rewritten counts as not seen. */
async function seenBy(
  { events }: Stores,
  { owner, run, after }: Pick<Reader, "owner" | "run" | "after">,
): Promise<{ seq: number; k: number }> {
  if (after.seq === 0 || after.epoch === 0) return after;
  const seq = await events.seen(keyOf(owner, run), after);
  return seq === after.seq ? after : { seq, k: Number.POSITIVE_INFINITY };
}

/**
 * Only readers of whole states need the messages. A long thread's messages are written in several ticks of the event
 * loop.
 */
async function historyOf(
  { threads }: Stores,
  owner: Owner,
  { thread_id }: RunRecord,
  { modes }: StreamModes,
): Promise<InitialThread> {
  const state = await threads.state(owner, thread_id);
  const messages = modes.has("values") ? await threads.messages(owner, thread_id) : [];
  return { calls: unanswered(messages), texts: await mapInTicks(owner.tenant, messages, textOf), state };
}
