// A wire is a fold: the same events always give the same frames. A reader that connects late or reconnects folds from
// the first event of its turn.

import { hasCode } from "../agent/core/errors.ts";
import { type Message, NO_USAGE } from "../agent/core/message.ts";
import { isSettled, type RunRecord } from "../agent/core/records.ts";
import { storedEvent } from "../agent/core/stored-json.ts";
import type { LogEntry, Stores } from "../agent/core/stores.ts";
import { keyOf } from "../engine/runs/control.ts";
import { followThread, readLogRange } from "../engine/runs/follow.ts";
import { trackTurn } from "../engine/runs/turn.ts";
import { sharedTick } from "../lib/ticks.ts";
import { doneEvent } from "../protocol/end.ts";
import { DoneStatus, isTerminal, type StreamEvent } from "../protocol/event.ts";
import type { Owner } from "../protocol/ids.ts";
import type { Frame, Frames, LongFrame } from "../server/http/sse.ts";

/** The fold of one reader. Called with each event of a run or turn, in order. Returns the frames for the event. */
export type Fold<F = Frame> = (event: StreamEvent, run: RunRecord) => readonly F[];

export interface FoldReader {
  readonly owner: Owner;
  /** The first run to read. */
  readonly from: RunRecord;
  /** A later, active run of the turn. Events before it do not end the turn. Default: `from`. */
  readonly at?: RunRecord;
  readonly fold: Fold<Frame | LongFrame>;
  /**
   * How far to read: one run, a whole turn, or until a function returns true for an event. The function is created for
   * each run.
   */
  readonly unit: "run" | "turn" | (() => (event: StreamEvent) => boolean);
  /** Returns the messages of the turn, which are folded if the events of `from` are no longer stored. */
  readonly messages: () => Promise<readonly Message[]>;
}

/**
 * Yields the frames of a run, or of a turn starting with one of its runs. A run that does not resume the previous one
 * ends the turn. Throws `events_expired` after the first frame.
 */
export function foldedFrames(stores: Stores, reader: FoldReader): Frames {
  const { owner, from, at = from, fold, unit } = reader;
  return async function* (signal) {
    const thread = { owner, threadId: from.thread_id, from: { run: from, after: { seq: 0 } } };
    let hasBegun = false;
    let isBefore = true;
    /** True if the runs up to `at` were folded from messages. */
    let isTold = false;
    let last: RunRecord | undefined;
    for await (const { run: next } of followThread(stores, thread, signal)) {
      if (last && next.resumes !== last.id) {
        yield fold(SUPERSEDED, last);
        return;
      }
      last = next;
      isBefore &&= next.id !== at.id;
      if (isTold) {
        isTold = next.id !== at.id;
        continue;
      }
      let run = next;
      const isOver = typeof unit === "function" ? unit() : unit === "turn" ? trackTurn() : isEnd;
      let over = false;
      const framesOf = (batch: readonly LogEntry[], known: ReadonlySet<string> = NONE) => {
        const frames: (Frame | LongFrame)[] = [];
        for (const entry of batch) {
          const event = storedEvent(entry);
          over ||= !isBefore && isOver(event);
          if (event.event !== "on_message" || !known.has(event.data.message.id))
            frames.push(...fold(event, run));
        }
        return frames;
      };
      try {
        for await (const batch of stores.events.read(keyOf(owner, run), 0, signal)) {
          await sharedTick(owner.tenant);
          yield framesOf(batch);
          hasBegun = true;
        }
      } catch (error) {
        if (hasBegun || !hasCode(error, "events_expired")) throw error;
        isTold = isBefore;
        isBefore = false;
        run = isTold ? at : run;
        const { last } = await stores.events.bounds(keyOf(owner, run));
        const messages = await reader.messages();
        yield eventsOf(messages, run).flatMap((event) => fold(event, run));
        const now = await stores.runs.get(owner, run.thread_id, run.id);
        if (!now || isSettled(now.status)) {
          yield fold(lastEventOf(now ?? run), run);
          return;
        }
        const known = new Set(messages.map(({ id }) => id));
        for await (const batch of stores.events.read(keyOf(owner, run), last, signal))
          yield framesOf(batch, known);
        hasBegun = true;
      }
      if (over) return;
    }
  };
}

/**
 * Folds the events so far without waiting for more. If events are no longer stored, folds the messages instead.
 * Resolves with the last run that was read.
 */
export async function foldSoFar(stores: Stores, reader: FoldReader): Promise<RunRecord> {
  const { owner, fold, unit } = reader;
  const isOver = unit === "turn" ? trackTurn() : isEnd;
  for (let run = reader.from; ; ) {
    const key = keyOf(owner, run);
    const { first, last } = await stores.events.bounds(key);
    let over = false;
    if (first === 1) {
      for await (const entry of readLogRange(stores.events, key, { after: 0, last })) {
        const event = storedEvent(entry);
        over ||= isOver(event);
        fold(event, run);
      }
    } else if (last > 0 || isSettled(run.status)) {
      for (const event of eventsOf(await reader.messages(), run)) fold(event, run);
      if (isSettled(run.status)) fold(lastEventOf(run), run);
      over = true;
    }
    const next = over ? undefined : await stores.runs.begun(owner, run.thread_id, run.id);
    if (next && next.resumes !== run.id) fold(SUPERSEDED, run);
    if (next?.resumes !== run.id) return run;
    run = next;
  }
}

/** Ends a turn that was waiting for a deferred result when a new message arrived. The result becomes its own message. */
const SUPERSEDED = doneEvent({ status: "cancelled", stop_reason: "superseded", usage: NO_USAGE });

const NONE: ReadonlySet<string> = new Set();

const isEnd = ({ event, path }: StreamEvent) => !path && isTerminal(event);

/** Returns the events that would have led to these messages. */
function eventsOf(messages: readonly Message[], { agent }: RunRecord): StreamEvent[] {
  const start: StreamEvent = { event: "run_start", data: { agent, model: "", attempt: 1 } };
  return [start, ...messages.flatMap(eventsOfMessage)];
}

/** Returns the last event of a settled run, based on its record. */
export function lastEventOf({ status, stop_reason = "end_turn", usage, error, details }: RunRecord) {
  if (error) return { event: "error", data: { ...error, usage } } as const;
  const data = { status: DoneStatus.parse(status), stop_reason, usage };
  return doneEvent(details ? { ...data, details } : data);
}

function eventsOfMessage(message: Message): StreamEvent[] {
  const written: StreamEvent = { event: "on_message", data: { message } };
  if (message.role !== "assistant") return [written];
  const model = message.model ?? "";
  const opening = { message_id: message.id, model };
  return [
    { event: "on_chat_model_start", name: model, data: opening },
    ...(message.reasoning ?? []).map(
      ({ text }): StreamEvent => ({ event: "on_chat_model_stream", data: { reasoning_delta: text } }),
    ),
    ...(message.content
      ? [{ event: "on_chat_model_stream", data: { delta: message.content } } as const]
      : []),
    { event: "on_chat_model_end", name: model, data: { message_id: message.id } },
    written,
  ];
}
