// A wire is a fold: the same events give the same frames. A reader that comes late or again folds from the first event of
// its turn.

import { hasCode } from "../../core/errors.ts";
import { DoneStatus, isTerminal, type StreamEvent } from "../../core/event.ts";
import type { Owner } from "../../core/ids.ts";
import type { Message } from "../../core/message.ts";
import { isSettled, type RunRecord } from "../../core/records.ts";
import type { LogEntry, Stores } from "../../core/stores.ts";
import { keyOf } from "../../runs/control.ts";
import { followThread } from "../../runs/follow.ts";
import { trackTurn } from "../../runs/turn.ts";
import type { Frame, Frames } from "../sse.ts";

/** One reader's fold: called with each event of a run or turn, in order, it returns the frames that the event gives. */
export type Fold = (event: StreamEvent, run: RunRecord) => readonly Frame[];

export interface FoldReader {
  readonly owner: Owner;
  /** The run to begin with. */
  readonly from: RunRecord;
  readonly fold: Fold;
  /** What is read: one run, or a whole turn. */
  readonly unit: "run" | "turn";
  /** The messages of the turn: what is folded when the events of `from` are no longer kept. */
  readonly messages: () => Promise<readonly Message[]>;
}

/** The frames of a run, or of a turn from one of its runs on. Throws `events_expired` after the first frame. */
export function foldedFrames(stores: Stores, reader: FoldReader): Frames {
  const { owner, from, fold, unit } = reader;
  return async function* (signal) {
    const start = { run: from, after: { seq: 0 } };
    const thread = { owner, threadId: from.thread_id, from: start };
    let hasBegun = false;
    for await (const { run } of followThread(stores, thread, signal)) {
      const isOver = unit === "turn" ? trackTurn() : isEnd;
      let over = false;
      const framesOf = (batch: readonly LogEntry[], known = new Set<string>()) => {
        const frames: Frame[] = [];
        for (const { json } of batch) {
          // The log holds exactly what was appended, which was checked then.
          const event = JSON.parse(json) as StreamEvent;
          over ||= isOver(event);
          if (event.event !== "on_message" || !known.has(event.data.message.id))
            frames.push(...fold(event, run));
        }
        return frames;
      };
      try {
        for await (const batch of stores.events.read(keyOf(owner, run), 0, signal)) {
          yield framesOf(batch);
          hasBegun = true;
        }
      } catch (error) {
        if (hasBegun || !hasCode(error, "events_expired")) throw error;
        const { last } = await stores.events.bounds(keyOf(owner, run));
        const messages = await reader.messages();
        yield eventsOf(messages, run).flatMap((event) => fold(event, run));
        const now = await stores.runs.get(owner, run.thread_id, run.id);
        if (!now || isSettled(now.status)) {
          yield fold(endOf(now ?? run), run);
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

const isEnd = ({ event, path }: StreamEvent) => !path && isTerminal(event);

/** The events that would have given these messages, told at once. */
function eventsOf(messages: readonly Message[], { agent }: RunRecord): StreamEvent[] {
  const start: StreamEvent = { event: "run_start", data: { agent, model: "", attempt: 1 } };
  return [start, ...messages.flatMap(eventsOfMessage)];
}

function endOf({ status, stop_reason = "end_turn", usage, error }: RunRecord): StreamEvent {
  if (error) return { event: "error", data: { ...error, usage } };
  return { event: "done", data: { status: DoneStatus.parse(status), stop_reason, usage } };
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
