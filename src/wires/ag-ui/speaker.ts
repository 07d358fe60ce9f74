// Converts the reasoning, text and calls of one agent to pairs of start and end events. The protocol's verifier refuses
// a run that ends before an end event, and content outside a pair.

import type { AssistantMessage } from "../../agent/core/message.ts";
import { type AguiEvent, type Attribution, callIdOf, reasoningId } from "./history.ts";

/** A part of a call, as written by the model. */
interface CallPiece {
  readonly index: number;
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly args_delta: string;
}

export type Speaker = ReturnType<typeof createSpeaker>;

export function createSpeaker(whose: Attribution) {
  let messageId = "";
  let text = "";
  let isThinking = false;
  let isSpeaking = false;
  /** The calls of this message, by index. */
  const calls = new Map<number, string>();
  const open = new Set<string>();

  const event = (type: string, rest: object): AguiEvent => ({ type, ...rest, ...whose });

  const endThought = (): AguiEvent[] => {
    if (!isThinking) return [];
    isThinking = false;
    const id = { messageId: reasoningId(messageId) };
    return [event("REASONING_MESSAGE_END", id), event("REASONING_END", id)];
  };

  /** Closes everything that is open. */
  const close = (): AguiEvent[] => {
    const events = endThought();
    if (isSpeaking) events.push(event("TEXT_MESSAGE_END", { messageId }));
    isSpeaking = false;
    for (const toolCallId of open) events.push(event("TOOL_CALL_END", { toolCallId }));
    open.clear();
    return events;
  };

  const begin = (id: string): AguiEvent[] => {
    const events = close();
    messageId = id;
    text = "";
    calls.clear();
    return events;
  };

  const think = (delta: string): AguiEvent[] => {
    if (delta === "" || messageId === "") return [];
    const id = { messageId: reasoningId(messageId) };
    const events = isThinking
      ? []
      : [event("REASONING_START", id), event("REASONING_MESSAGE_START", { ...id, role: "reasoning" })];
    isThinking = true;
    return [...events, event("REASONING_MESSAGE_CONTENT", { ...id, delta })];
  };

  const say = (delta: string): AguiEvent[] => {
    if (delta === "" || messageId === "") return [];
    const events = endThought();
    if (!isSpeaking) events.push(event("TEXT_MESSAGE_START", { messageId, role: "assistant" }));
    isSpeaking = true;
    text += delta;
    return [...events, event("TEXT_MESSAGE_CONTENT", { messageId, delta })];
  };

  const call = ({ index, id, name, args_delta }: CallPiece): AguiEvent[] => {
    if (messageId === "") return [];
    const events = endThought();
    if (id !== undefined && name !== undefined && !calls.has(index)) {
      const toolCallId = callIdOf(id, whose);
      // If two calls have the same id, the client sees only the first one.
      calls.set(index, open.has(toolCallId) ? "" : toolCallId);
      if (open.has(toolCallId)) return events;
      open.add(toolCallId);
      events.push(event("TOOL_CALL_START", { toolCallId, toolCallName: name, parentMessageId: messageId }));
    }
    const toolCallId = calls.get(index);
    if (toolCallId && args_delta !== "")
      events.push(event("TOOL_CALL_ARGS", { toolCallId, delta: args_delta }));
    return events;
  };

  /** Adds the parts of a message that were not streamed, or all of them if its beginning was missed. */
  const complete = (message: AssistantMessage): AguiEvent[] => {
    const events: AguiEvent[] = [];
    if (message.id !== messageId) {
      events.push(...begin(message.id));
      for (const thought of message.reasoning ?? []) events.push(...think(thought.text));
      events.push(...say(message.content));
    }
    const written = new Set(calls.values());
    for (const { id, name, args, malformed } of message.tool_calls ?? [])
      if (!written.has(callIdOf(id, whose)))
        events.push(...call({ index: calls.size, id, name, args_delta: malformed ?? JSON.stringify(args) }));
    return [...events, ...close()];
  };

  return {
    begin,
    think,
    say,
    call,
    close,
    complete,
    /** Returns true if part of the current message was shown. */
    hasBegun: () => text !== "" || calls.size > 0,
    /** Returns true if the final message differs from the streamed text, for example because a hook changed it. */
    differsFrom: (message: AssistantMessage) => message.id === messageId && message.content !== text,
  };
}
