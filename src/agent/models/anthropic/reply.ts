// Reads the Messages API's stream into events and a reply. Pure. Checks the actual type of every value before using it.

import { isObject } from "../../../lib/json.ts";
import type { StreamEvent } from "../../../protocol/event.ts";
import type { Reasoning } from "../../core/message.ts";
import { openThought, replyDraft, type Thought } from "../reading/draft.ts";
import { type ProviderEvent, type ReplyReader, textIn } from "../reply.ts";
import { searchBlocks } from "./search-blocks.ts";

/**
 * A thought and its position in the reply, which are kept because a stored reply separates text from calls.
 */
interface PlacedThought {
  readonly thought: Thought;
  /** Undefined until it arrives. Some servers do not sign thoughts. */
  signature: string | undefined;
  readonly redacted?: string;
  readonly afterText: number;
  readonly afterCalls: number;
}

interface AnthropicReader extends ReplyReader {
  /**
   * True if the provider paused its own tools. Another request can continue the reply, unless the reply has
   * calls, whose results the provider needs first.
   */
  readonly isPaused: boolean;
  /** The number of characters so far, including those of the parts before this one. */
  readonly length: number;
}

/**
 * With `searches`, the provider may pause the reply. A paused reply that no other request continues has reached
 * a limit. `before` is the number of characters in the parts before this one.
 */
export function anthropicReply({ searches = false, before = 0 } = {}): AnthropicReader {
  const draft = replyDraft(before);
  const thoughts: PlacedThought[] = [];
  /** The unfinished thoughts, by the index of their block. */
  const open = new Map<unknown, PlacedThought>();
  const own = searchBlocks(draft, () => thoughts.length);

  const begin = (place: unknown, block: ProviderEvent): PlacedThought => {
    const placed: PlacedThought = {
      thought: openThought(),
      signature: typeof block.signature === "string" ? block.signature : undefined,
      ...(block.type === "redacted_thinking" ? { redacted: textIn(block.data) } : {}),
      afterText: draft.text.length,
      afterCalls: draft.callCount,
    };
    thoughts.push(placed);
    open.set(place, placed);
    return placed;
  };

  const start = (place: unknown, block: ProviderEvent, out: StreamEvent[]) => {
    own.end();
    switch (block.type) {
      case "text":
        own.text(place, block);
        draft.say(block.text, out);
        break;
      case "thinking":
      case "redacted_thinking": {
        draft.think(begin(place, block).thought, block.thinking, out);
        break;
      }
      case "tool_use": {
        const { id, name, input } = block;
        // Compatible servers may send the whole input at once. Anthropic sends `{}` and then the pieces.
        const args = isObject(input) && Object.keys(input).length === 0 ? "" : input;
        draft.call({ place, id, name, args, begins: true }, out);
        break;
      }
      default:
        own.begin(place, block);
    }
  };

  const grow = (place: unknown, delta: ProviderEvent, out: StreamEvent[]) => {
    const placed = open.get(place);
    switch (delta.type ?? kindOf(delta)) {
      case "text_delta":
        draft.say(delta.text, out);
        break;
      case "input_json_delta":
        if (!own.input(place, delta.partial_json)) draft.call({ place, args: delta.partial_json }, out);
        break;
      case "citations_delta":
        own.cite(place, delta.citation);
        break;
      case "thinking_delta":
        // Some gateways omit the beginning of a block.
        draft.think((placed ?? begin(place, {})).thought, delta.thinking, out);
        break;
      case "signature_delta":
        if (placed) placed.signature = (placed.signature ?? "") + textIn(delta.signature);
        break;
    }
  };

  /** Reads a complete reply that the server sent instead of the requested stream. */
  const whole = ({ content, usage, stop_reason }: ProviderEvent, out: StreamEvent[]) => {
    if (Array.isArray(content))
      for (const [place, block] of content.entries()) if (isObject(block)) start(place, block, out);
    draft.counts.take(usage);
    draft.ending.take(stop_reason);
    draft.close();
  };

  const isPaused = () => searches && draft.ending.word === "pause_turn" && draft.callCount === 0;

  return {
    take(event, out) {
      const { type, index, content_block: block, delta, message } = event;
      switch (type) {
        case "content_block_delta":
          if (isObject(delta)) grow(index, delta, out);
          break;
        case "content_block_start":
          if (isObject(block)) start(index, block, out);
          break;
        case "message_start":
          if (isObject(message)) draft.counts.take(message.usage);
          break;
        case "message_delta":
          draft.counts.take(event.usage);
          draft.ending.take((isObject(delta) && delta.stop_reason) || event.stop_reason);
          break;
        case "message":
          whole(event, out);
          break;
        case "message_stop":
          draft.close();
          break;
      }
    },
    close: () => draft.close(),
    get ended() {
      return draft.isClosed;
    },
    get usage() {
      return draft.counts.usage;
    },
    get isPaused() {
      return isPaused();
    },
    get length() {
      return draft.length;
    },
    finish(out) {
      const reply = { ...draft.finish(() => thoughts.map(toReasoning), out), ...own.finish() };
      const isCut = isPaused() && reply.stop_reason === "end_turn";
      return isCut ? { ...reply, stop_reason: "max_tokens" } : reply;
    },
  };
}

/** Returns the kind of a piece without a `type`. */
const kindOf = (delta: ProviderEvent) => KINDS.find(([key]) => typeof delta[key] === "string")?.[1];

const KINDS = [
  ["text", "text_delta"],
  ["partial_json", "input_json_delta"],
  ["thinking", "thinking_delta"],
] as const;

function toReasoning({ thought, signature, redacted, afterText, afterCalls }: PlacedThought): Reasoning {
  return {
    text: thought.text,
    metadata: {
      ...(signature === undefined ? {} : { signature }),
      ...(redacted === undefined ? {} : { redacted }),
      ...(signature === undefined && redacted === undefined ? { unsigned: true } : {}),
      ...(afterText > 0 ? { after_text: afterText } : {}),
      ...(afterCalls > 0 ? { after_calls: afterCalls } : {}),
    },
  };
}
