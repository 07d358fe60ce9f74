// Buffers a model's message until it has been reviewed, then sends it or its replacement.

import type { StreamEvent } from "../../../protocol/event.ts";
import type { AssistantMessage } from "../../core/message.ts";
import type { Completion } from "../../core/model.ts";
import { mapEvents, type Stream } from "../../core/stream.ts";

type ModelEnd = Extract<StreamEvent, { event: "on_chat_model_end" }>;

/** Returns the completion to send: either the given completion or a replacement. */
export type Review = (completion: Completion) => Stream<Completion>;

/**
 * Forwards `stream` but holds back the message's deltas until `review` has returned. A failed attempt sends
 * no deltas. No other buffer is needed, because the message itself contains the deltas, and `max_tokens`
 * limits its size.
 */
export async function* held(stream: Stream<Completion>, review: Review): Stream<Completion> {
  let end: ModelEnd | undefined;
  try {
    const finished = yield* mapEvents(stream, (event) => {
      if (event.event === "on_chat_model_stream") return [];
      if (event.event === "on_chat_model_end" && !event.data.error) {
        end = event;
        return [];
      }
      if (!end || event.event !== "on_chat_model_start") return [event];
      // A new model call replaces the previous message, which therefore needs no review.
      const givenUp = end;
      end = undefined;
      return [givenUp, event];
    });
    const completion = yield* review(finished);
    if (end) yield* ended(end, completion);
    return completion;
  } catch (error) {
    if (end) yield end;
    throw error;
  }
}

function* ended(end: ModelEnd, { message, stop_reason }: Completion) {
  yield* spoken(message);
  yield { ...end, data: { ...end.data, stop_reason } };
}

/** Yields a finished message as deltas. */
export function* spoken({ reasoning = [], content, tool_calls = [] }: AssistantMessage) {
  for (const { text } of reasoning) if (text) yield delta({ reasoning_delta: text });
  if (content) yield delta({ delta: content });
  for (const [index, { id, name, args, malformed }] of tool_calls.entries())
    yield delta({ tool_call: { index, id, name, args_delta: malformed ?? JSON.stringify(args) } });
}

type Delta = Extract<StreamEvent, { event: "on_chat_model_stream" }>;
const delta = (data: Delta["data"]): Delta => ({ event: "on_chat_model_stream", data });
