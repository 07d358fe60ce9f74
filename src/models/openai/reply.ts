// The stream of Chat Completions, read into events and a reply. Pure. Takes what compatible servers add (thoughts,
// calls without an index, errors as chunks), and takes no value for what its type says before it was looked at.

import type { StreamEvent } from "../../core/event.ts";
import { NO_USAGE, type Reasoning, type Usage } from "../../core/message.ts";
import type { StopReason } from "../../core/model.ts";
import { ProviderError } from "../failure.ts";
import {
  countIn,
  idIn,
  isKeepable,
  jsonIn,
  type OpenCall,
  openCall,
  type ReplyReader,
  settle,
  textIn,
} from "../reply.ts";
import { afterThought, type CallExtras, isThought, untagged } from "./google.ts";

interface CallDelta {
  index?: unknown;
  id?: unknown;
  function?: { name?: unknown; arguments?: unknown };
  extra_content?: unknown;
}

/** A piece of a thought as OpenRouter sends it. Its text comes in `reasoning` as well. */
type Detail = Record<string, unknown>;

interface Delta {
  content?: unknown;
  refusal?: unknown;
  tool_calls?: CallDelta[] | null;
  reasoning_content?: unknown;
  reasoning?: unknown;
  reasoning_details?: unknown;
  extra_content?: unknown;
}

/** Mistral's reasoning models send parts. */
type ContentPart = { type: "text"; text: unknown } | { type: "thinking"; thinking: { text?: unknown }[] };

interface Chunk {
  choices?: { delta?: Delta | null; finish_reason?: unknown }[];
  usage?: Counts | null;
  error?: unknown;
}

interface Counts {
  prompt_tokens?: unknown;
  completion_tokens?: unknown;
  prompt_tokens_details?: { cached_tokens?: unknown; cache_write_tokens?: unknown } | null;
  prompt_cache_hit_tokens?: unknown;
}

const STOP_REASONS: ReadonlyMap<string, StopReason> = new Map([
  ["tool_calls", "tool_use"],
  ["function_call", "tool_use"],
  ["length", "max_tokens"],
  ["model_length", "max_tokens"], // Mistral
  ["content_filter", "refusal"],
]);

export function openaiReply(): ReplyReader {
  let text = "";
  let thought = "";
  let field: "reasoning_content" | "reasoning" | undefined;
  let refused = false;
  let usage: Usage = NO_USAGE;
  let finish: string | undefined;
  let ended = false;
  const details: Detail[] = [];
  const calls: OpenCall[] = [];
  const slots = new Map<number, number>();
  const extras: Record<number, unknown> = {};
  let hasThought = false;

  const say = (delta: string, out: StreamEvent[]) => {
    text += delta;
    out.push({ event: "on_chat_model_stream", data: { delta } });
  };

  const think = (reasoning_delta: string, out: StreamEvent[]) => {
    thought += reasoning_delta;
    out.push({ event: "on_chat_model_stream", data: { reasoning_delta } });
  };

  const speak = (content: unknown, out: StreamEvent[]) => {
    if (!Array.isArray(content)) {
      const words = textIn(content);
      if (words !== "") say(words, out);
      return;
    }
    for (const part of content as ContentPart[]) {
      if (part.type === "text") speak(part.text, out);
      if (part.type === "thinking") for (const { text } of part.thinking) reflect(text, out);
    }
  };

  const reflect = (words: unknown, out: StreamEvent[]) => {
    const thoughts = textIn(words);
    if (thoughts !== "") think(thoughts, out);
  };

  const ponder = (delta: Delta, out: StreamEvent[]) => {
    if (Array.isArray(delta.reasoning_details))
      for (const detail of delta.reasoning_details) if (isKeepable(detail)) addDetail(details, detail);
    const name = delta.reasoning_content ? "reasoning_content" : "reasoning";
    const words = textIn(delta[name]);
    if (words === "") return;
    field = name;
    think(words, out);
  };

  /** Google's thoughts come as text, which says of itself that it is one. */
  const speakOrThink = ({ content, extra_content }: Delta, out: StreamEvent[]) => {
    if (isThought(extra_content)) {
      hasThought = true;
      reflect(untagged(textIn(content)), out);
    } else if (hasThought && typeof content === "string") {
      speak(afterThought(content), out);
      hasThought = content === "";
    } else speak(content, out);
  };

  const call = (delta: CallDelta, out: StreamEvent[]) => {
    const { name, arguments: json } = delta.function ?? {};
    const args_delta = jsonIn(json);
    const known = slotOf(delta, slots, calls);
    if (isKeepable(delta.extra_content)) extras[known ?? calls.length] = delta.extra_content;
    if (known !== undefined) {
      const open = calls[known];
      if (open) open.json += args_delta;
      if (args_delta) out.push(calling({ index: known, args_delta }));
      return;
    }
    const opened = openCall({ id: delta.id, name, json: args_delta });
    const index = calls.push(opened) - 1;
    slots.set(typeof delta.index === "number" ? delta.index : -1 - index, index);
    out.push(calling({ index, id: opened.id, name: opened.name, args_delta }));
  };

  return {
    take(data, out) {
      if (data === "[DONE]") {
        ended = true;
        return;
      }
      const chunk: Chunk = JSON.parse(data);
      if (chunk.error) throw new ProviderError("the stream ended with an error", { body: chunk.error });
      if (chunk.usage) usage = counted(chunk.usage);
      const choice = chunk.choices?.[0];
      if (!choice) return;
      const { delta } = choice;
      if (delta) {
        speakOrThink(delta, out);
        ponder(delta, out);
        const refusal = textIn(delta.refusal);
        if (refusal !== "") {
          refused = true;
          say(refusal, out);
        }
        if (delta.tool_calls) for (const piece of delta.tool_calls) call(piece, out);
      }
      finish = choice.finish_reason == null ? finish : textIn(choice.finish_reason);
    },
    get ended() {
      return ended;
    },
    get usage() {
      return usage;
    },
    finish() {
      if (finish === undefined) throw new ProviderError("the stream ended before the reply did");
      const [cause = finish] = finish.split(":"); // Google adds a reason of its own behind it
      if (cause === "function_call_filter") throw malformedCall(finish);
      const stop = refused ? "refusal" : (STOP_REASONS.get(cause) ?? "end_turn");
      const reasoning = reasoningOf(thought, { field, details, calls: extras });
      return { content: text, reasoning, usage, ...settle(stop, calls) };
    },
  };
}

const calling = (tool_call: {
  index: number;
  id?: string;
  name?: string;
  args_delta: string;
}): StreamEvent => ({
  event: "on_chat_model_stream",
  data: { tool_call },
});

/**
 * Which call a piece belongs to, or nothing when it begins another. By its index, unless it names another call:
 * some servers give all of them the same. Without an index by its id, and without that to the one before.
 */
function slotOf(piece: CallDelta, slots: ReadonlyMap<number, number>, calls: readonly OpenCall[]) {
  const { index, function: made } = piece;
  const id = idIn(piece.id);
  if (typeof index !== "number") {
    const same = id ? calls.findIndex((call) => call.id === id) : calls.length - 1;
    return same === -1 ? undefined : same;
  }
  const slot = slots.get(index);
  const isAnother = slot !== undefined && id && made?.name && calls[slot]?.id !== id;
  return isAnother ? undefined : slot;
}

/** Pieces of one thought share an index and a type: their texts grow, other values are replaced. */
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

interface Signed {
  readonly field: string | undefined;
  readonly details: readonly Detail[];
  readonly calls: CallExtras;
}

function reasoningOf(text: string, { field, details, calls }: Signed): Reasoning[] {
  const metadata = {
    ...(field ? { field } : {}),
    ...(details.length > 0 ? { details } : {}),
    ...(Object.keys(calls).length > 0 ? { calls } : {}),
  };
  if (text === "" && details.length === 0 && !("calls" in metadata)) return [];
  return [{ text, metadata }];
}

/** Gemini takes back a call that it wrote wrong, and says nothing else: asked again, it writes a better one. */
const malformedCall = (finish: string) =>
  new ProviderError("the model made a malformed call", {
    body: { code: 503, message: `The model's reply was withdrawn (${finish}).` },
  });

/** The provider's `prompt_tokens` includes tokens from the cache. */
function counted(usage: Counts): Usage {
  const { cached_tokens, cache_write_tokens } = usage.prompt_tokens_details ?? {};
  return {
    input_tokens: countIn(usage.prompt_tokens) ?? 0,
    output_tokens: countIn(usage.completion_tokens) ?? 0,
    cache_read_tokens: countIn(cached_tokens) ?? countIn(usage.prompt_cache_hit_tokens) ?? 0,
    cache_write_tokens: countIn(cache_write_tokens) ?? 0,
  };
}
