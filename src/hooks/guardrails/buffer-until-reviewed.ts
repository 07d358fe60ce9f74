// A model's message that viewers see only once somebody has read it: its deltas are held back, and are sent
// together, or not at all.

import type { StreamEvent } from "../../core/event.ts";
import type { AssistantMessage } from "../../core/message.ts";
import type { Completion } from "../../core/model.ts";
import { mapEvents, type Stream } from "../../core/stream.ts";

type ModelEnd = Extract<StreamEvent, { event: "on_chat_model_end" }>;

/** What to make of a finished message: the same completion to let it out, another one in its place. */
export type Review = (completion: Completion) => Stream<Completion>;

/**
 * Passes `stream` on without a word of what the model says, until `review` has decided what that is. The
 * message stays open meanwhile. Of an attempt that fails nothing is let out. What is held is the message
 * itself, which the model's `max_tokens` bounds.
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
      // The message before it was given up.
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

/** A finished message as deltas. */
export function* spoken({ reasoning = [], content, tool_calls = [] }: AssistantMessage) {
  for (const { text } of reasoning) if (text) yield delta({ reasoning_delta: text });
  if (content) yield delta({ delta: content });
  for (const [index, { id, name, args, malformed }] of tool_calls.entries())
    yield delta({ tool_call: { index, id, name, args_delta: malformed ?? JSON.stringify(args) } });
}

type Delta = Extract<StreamEvent, { event: "on_chat_model_stream" }>;
const delta = (data: Delta["data"]): Delta => ({ event: "on_chat_model_stream", data });
