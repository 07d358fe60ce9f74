// One model call between its brackets; the innermost layer of the onion.

import { AppError } from "./errors.ts";
import { newMessageId } from "./ids.ts";
import { type AssistantMessage, addUsage, type ToolCall } from "./message.ts";
import { isBlank } from "./messages.ts";
import type { Completion, ModelReply, ModelRequest } from "./model.ts";
import type { LiveRun } from "./run.ts";
import type { Stream } from "./stream.ts";

/** A failed attempt is closed too, and leaves nothing in the thread. */
export async function* speak(request: ModelRequest, run: LiveRun): Stream<Completion> {
  const { model } = request;
  const id = newMessageId();
  run.offered = request.tools.map(({ name }) => name);
  const shown = { model: model.name, message_count: request.messages.length };
  yield { event: "on_chat_model_start", name: model.name, data: { message_id: id, ...shown } };
  try {
    const reply = yield* model.stream(request);
    const { stop_reason, usage } = reply;
    run.usage = addUsage(run.usage, usage);
    yield { event: "on_chat_model_end", name: model.name, data: { message_id: id, stop_reason, usage } };
    return { message: asMessage(id, model.name, reply), stop_reason };
  } catch (error) {
    const failure = request.signal.aborted ? reasonOf(request.signal) : AppError.from(error);
    yield {
      event: "on_chat_model_end",
      name: model.name,
      data: { message_id: id, error: failure.toInfo() },
    };
    throw error;
  }
}

const CANCELLED = new AppError("cancelled", "Cancelled before the model had finished.");

/** An abort that says why (a timeout, a lost lease) is reported as that. */
const reasonOf = ({ reason }: AbortSignal) => (reason instanceof AppError ? reason : CANCELLED);

function asMessage(id: string, model: string, reply: ModelReply): AssistantMessage {
  const { content, tool_calls, reasoning, usage } = reply;
  return {
    ...{ id, created_at: new Date().toISOString(), role: "assistant", content },
    ...(tool_calls.length > 0 ? { tool_calls: distinct(tool_calls) } : {}),
    ...(reasoning.length > 0 ? { reasoning: [...reasoning] } : {}),
    ...{ model, usage },
  };
}

/** A call is known by its id: where a model gives one twice, the second gets another. */
function distinct(calls: readonly ToolCall[]): ToolCall[] {
  const taken = new Set<string>();
  return calls.map((call) => {
    let { id } = call;
    for (let n = 2; taken.has(id); n++) id = `${call.id}_${n}`;
    taken.add(id);
    return { ...call, id };
  });
}

/** A provider may answer nothing at all; such a message would make the thread unacceptable to the next one. */
export const isEmpty = (message: AssistantMessage) => isBlank(message.content) && !message.tool_calls;
