// Reads the stream of Chat Completions into events and a reply. Pure. Accepts additions of compatible servers (thoughts, whole
// messages, calls in the old format), and checks the actual type of every value before using it.

import { isObject } from "../../../lib/json.ts";
import type { StreamEvent } from "../../../protocol/event.ts";
import type { Reasoning } from "../../core/message.ts";
import { ProviderError } from "../failure.ts";
import { openThought, replyDraft } from "../reading/draft.ts";
import { isKeepable, type ProviderEvent, type ReplyReader, textIn } from "../reply.ts";
import { annotationsOf } from "./annotations.ts";
import { afterThought, type CallExtras, isThought, untagged } from "./google.ts";

/** A piece of a thought in OpenRouter's format. `reasoning` contains its text as well. */
type Detail = Record<string, unknown>;

/** With `searches`, the server has searched the web for this reply, even if the reply does not contain a search. */
export function openaiReply({ searches = false } = {}): ReplyReader {
  const draft = replyDraft();
  const annotations = annotationsOf(draft);
  const thought = openThought();
  let field: string | undefined;
  const details: Detail[] = [];
  const extras: Record<number, unknown> = {};
  let hasThought = false;

  const think = (words: unknown, out: StreamEvent[]) => draft.think(thought, words, out);

  /** Databricks and Mistral's reasoning models send content in parts. */
  const speak = (content: unknown, out: StreamEvent[]) => {
    if (!isObject(content) && !Array.isArray(content)) return draft.say(content, out);
    for (const part of [content].flat().filter(isObject)) {
      draft.say(part.text, out);
      for (const piece of [part.thinking ?? part.summary].flat())
        think(isObject(piece) ? piece.text : piece, out);
    }
  };

  const ponder = (delta: ProviderEvent, out: StreamEvent[]) => {
    if (Array.isArray(delta.reasoning_details))
      for (const detail of delta.reasoning_details) if (isKeepable(detail)) addDetail(details, detail);
    const name = THOUGHTS.find((each) => textIn(delta[each]) !== "");
    if (name === undefined) return;
    field = name;
    think(delta[name], out);
  };

  /** Adds text or a thought, because Google sends thoughts as marked text. */
  const speakOrThink = ({ content, extra_content }: ProviderEvent, out: StreamEvent[]) => {
    if (isThought(extra_content)) {
      hasThought = true;
      think(untagged(textIn(content)), out);
    } else if (hasThought && typeof content === "string") {
      speak(afterThought(content), out);
      hasThought = content === "";
    } else speak(content, out);
  };

  const call = (piece: ProviderEvent, out: StreamEvent[]) => {
    const { name, arguments: args } = isObject(piece.function) ? piece.function : piece;
    const index = draft.call({ place: piece.index, id: piece.id, name, args }, out);
    if (index !== undefined && isKeepable(piece.extra_content)) extras[index] = piece.extra_content;
  };

  const grow = (delta: ProviderEvent, out: StreamEvent[]) => {
    ponder(delta, out);
    speakOrThink(delta, out);
    annotations.take(delta.annotations);
    if (textIn(delta.refusal) !== "") {
      draft.refuse();
      draft.say(delta.refusal, out);
    }
    if (delta.tool_calls) for (const piece of [delta.tool_calls].flat().filter(isObject)) call(piece, out);
    if (isObject(delta.function_call)) call({ function: delta.function_call }, out);
  };

  /**
   * Some servers send the whole text so far instead of only the new part. Servers that do not stream send the
   * whole text once.
   */
  const growTo = (message: ProviderEvent, out: StreamEvent[]) => {
    const { content } = message;
    const isLonger = typeof content === "string" && content.startsWith(draft.text);
    grow(isLonger ? { ...message, content: content.slice(draft.text.length) } : message, out);
  };

  return {
    take({ choices, usage, x_groq }, out) {
      draft.counts.take(usage);
      if (isObject(x_groq)) draft.counts.take(x_groq.usage);
      const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
      if (!isObject(choice)) return;
      if (searches) annotations.searched();
      const { delta, message, error } = choice;
      if (isObject(error)) throw new ProviderError("the stream ended with an error", { body: error });
      draft.counts.take(choice.usage); // Moonshot sends counts here
      if (isObject(delta)) grow(delta, out);
      else if (isObject(message)) growTo(message, out);
      else draft.say(choice.text, out); // the format of plain completions, without chat
      draft.ending.take(choice.finish_reason);
      if (!isObject(delta)) return;
      draft.counts.take(delta.usage);
      draft.ending.take(delta.finish_reason);
    },
    close: () => draft.close(),
    get ended() {
      return draft.isClosed;
    },
    get usage() {
      return draft.counts.usage;
    },
    finish(out) {
      const reply = draft.finish(() => reasoningOf(thought.text, { field, details, calls: extras }), out);
      return { ...reply, ...annotations.finish() };
    },
  };
}

/**
 * The fields in which servers send thoughts. Only the first two are sent back (see
 * src/agent/models/openai/wire.ts).
 */
const THOUGHTS = ["reasoning_content", "reasoning", "reasoning_text", "thinking"] as const;

/** Pieces of one thought share an index and a type. Texts are appended, and other values are replaced. */
function addDetail(details: Detail[], piece: Detail): void {
  const same = details.find((detail) => detail.index === piece.index && detail.type === piece.type);
  if (!same || piece.index === undefined) {
    details.push({ ...piece });
    return;
  }
  for (const [key, value] of Object.entries(piece)) {
    const grows = typeof value === "string" && GROWING.has(key);
    same[key] = grows ? `${String(same[key] ?? "")}${value}` : (value ?? same[key]);
  }
}

const GROWING: ReadonlySet<string> = new Set(["text", "summary", "data"]);

interface ReasoningParts {
  readonly field: string | undefined;
  readonly details: readonly Detail[];
  readonly calls: CallExtras;
}

function reasoningOf(text: string, { field, details, calls }: ReasoningParts): Reasoning[] {
  const metadata = {
    ...(field ? { field } : {}),
    ...(details.length > 0 ? { details } : {}),
    ...(Object.keys(calls).length > 0 ? { calls } : {}),
  };
  if (text === "" && details.length === 0 && !("calls" in metadata)) return [];
  return [{ text, metadata }];
}
