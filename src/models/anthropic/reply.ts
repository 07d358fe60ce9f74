// The Messages API's stream, read into events and a reply. Pure.

import type { Anthropic } from "@anthropic-ai/sdk";
import type { StreamEvent } from "../../core/event.ts";
import { NO_USAGE, type Reasoning, type Usage } from "../../core/message.ts";
import type { StopReason } from "../../core/model.ts";
import { ProviderError } from "../failure.ts";
import { countIn, jsonIn, type OpenCall, openCall, type ReplyReader, settle, textIn } from "../reply.ts";

type Event = Anthropic.RawMessageStreamEvent | { type: "error"; error: unknown } | { type: "ping" };

/** Where in the reply a thought stands; a stored reply holds its text and its calls apart. */
interface Thought {
  text: string;
  signature: string;
  readonly redacted?: string;
  readonly afterText: number;
  readonly afterCalls: number;
}

/** A block by its index in the stream, while it is open. */
type OpenBlock = { readonly call: OpenCall; readonly slot: number } | { readonly thought: Thought };

/** A `pause_turn` is not among them: only the provider's own tools pause a turn, and none is ever offered. */
const STOP_REASONS: ReadonlyMap<string, StopReason> = new Map([
  ["tool_use", "tool_use"],
  ["max_tokens", "max_tokens"],
  ["model_context_window_exceeded", "max_tokens"],
  ["stop_sequence", "stop_sequence"],
  ["refusal", "refusal"],
]);

export function anthropicReply(): ReplyReader {
  let text = "";
  let usage: Usage = NO_USAGE;
  let stop = "end_turn";
  let ended = false;
  const calls: OpenCall[] = [];
  const thoughts: Thought[] = [];
  const blocks = new Map<number, OpenBlock>();

  const start = (
    { index, content_block: block }: Anthropic.RawContentBlockStartEvent,
    out: StreamEvent[],
  ) => {
    switch (block.type) {
      case "text":
        say(block.text, out);
        break;
      case "thinking":
      case "redacted_thinking": {
        const thought: Thought = {
          text: "",
          signature: "",
          ...(block.type === "redacted_thinking" ? { redacted: textIn(block.data) } : {}),
          afterText: text.length,
          afterCalls: calls.length,
        };
        thoughts.push(thought);
        blocks.set(index, { thought });
        if (block.type === "thinking") think(thought, block.thinking, out);
        break;
      }
      case "tool_use": {
        // Compatible servers may send the whole input at once; the vendor sends `{}` and then the pieces.
        const json = Object.keys(block.input ?? {}).length > 0 ? JSON.stringify(block.input) : "";
        const call = openCall({ id: block.id, name: block.name, json });
        const slot = calls.push(call) - 1;
        blocks.set(index, { call, slot });
        out.push(calling({ index: slot, id: call.id, name: call.name, args_delta: json }));
        break;
      }
    }
  };

  const grow = ({ index, delta }: Anthropic.RawContentBlockDeltaEvent, out: StreamEvent[]) => {
    if (delta.type === "text_delta") return say(delta.text, out);
    const open = blocks.get(index);
    if (!open) return;
    if ("call" in open) {
      const args_delta = delta.type === "input_json_delta" ? jsonIn(delta.partial_json) : "";
      if (args_delta === "") return;
      open.call.json += args_delta;
      out.push(calling({ index: open.slot, args_delta }));
    } else if (delta.type === "thinking_delta") {
      think(open.thought, delta.thinking, out);
    } else if (delta.type === "signature_delta") {
      open.thought.signature += textIn(delta.signature);
    }
  };

  const think = (thought: Thought, words: unknown, out: StreamEvent[]) => {
    const reasoning_delta = textIn(words);
    if (reasoning_delta === "") return;
    thought.text += reasoning_delta;
    out.push({ event: "on_chat_model_stream", data: { reasoning_delta } });
  };

  const say = (words: unknown, out: StreamEvent[]) => {
    const delta = textIn(words);
    if (delta === "") return;
    text += delta;
    out.push({ event: "on_chat_model_stream", data: { delta } });
  };

  return {
    take(data, out) {
      const event: Event = JSON.parse(data);
      switch (event.type) {
        case "content_block_delta":
          return grow(event, out);
        case "content_block_start":
          return start(event, out);
        case "message_start":
          usage = counted(usage, event.message?.usage);
          return;
        case "message_delta":
          usage = counted(usage, event.usage);
          stop = event.delta?.stop_reason ?? stop;
          return;
        case "message_stop":
          ended = true;
          return;
        case "error":
          throw new ProviderError("the stream ended with an error", { body: event });
      }
    },
    get ended() {
      return ended;
    },
    get usage() {
      return usage;
    },
    finish() {
      const reasoning = thoughts.map(toReasoning);
      return { content: text, reasoning, usage, ...settle(STOP_REASONS.get(stop) ?? "end_turn", calls) };
    },
  };
}

type CallDelta = { index: number; id?: string; name?: string; args_delta: string };

const calling = (tool_call: CallDelta): StreamEvent => ({
  event: "on_chat_model_stream",
  data: { tool_call },
});

type Counts = Partial<Record<keyof Anthropic.MessageDeltaUsage, unknown>>;

/** The provider counts tokens read from the cache and written to it beside `input_tokens`. */
function counted(before: Usage, now: Counts | undefined): Usage {
  const cache_read_tokens = countIn(now?.cache_read_input_tokens) ?? before.cache_read_tokens;
  const cache_write_tokens = countIn(now?.cache_creation_input_tokens) ?? before.cache_write_tokens;
  const uncached =
    countIn(now?.input_tokens) ?? before.input_tokens - before.cache_read_tokens - before.cache_write_tokens;
  return {
    input_tokens: uncached + cache_read_tokens + cache_write_tokens,
    output_tokens: countIn(now?.output_tokens) ?? before.output_tokens,
    cache_read_tokens,
    cache_write_tokens,
  };
}

function toReasoning({ text, signature, redacted, afterText, afterCalls }: Thought): Reasoning {
  return {
    text,
    metadata: {
      ...(signature ? { signature } : {}),
      ...(redacted === undefined ? {} : { redacted }),
      ...(afterText > 0 ? { after_text: afterText } : {}),
      ...(afterCalls > 0 ? { after_calls: afterCalls } : {}),
    },
  };
}
