// Converts a model request for the Messages API. Pure. The parts that change least come first, and equal beginnings produce
// equal bytes, so the provider's cache can reuse them.

import type { Anthropic } from "@anthropic-ai/sdk";
import type { JsonSchema } from "../../../lib/untrusted-schema/index.ts";
import type { Part, ProviderBlock, Reasoning } from "../../core/message.ts";
import type {
  ModelReply,
  ModelRequest,
  ModelSettings,
  SystemBlock,
  ToolChoice,
  ToolSchema,
} from "../../core/model.ts";
import type { ClosedTurns, WireSteps } from "../closed-turns.ts";
import { effortOf } from "../effort.ts";
import { fileText, isPdf, nameOf } from "../file-text.ts";
import { enforceable } from "../output.ts";
import { type AnsweredCall, CALL_ID, type HistoryStep, repair } from "../repair.ts";
import { forces, toolChoiceOf } from "../tool-choice.ts";
import { generationOf, limited, maxTokens } from "./generation.ts";
import { acceptedBlocks, searchTool } from "./search-tool.ts";

type Block = Anthropic.ContentBlockParam;
type AssistantStep = Extract<HistoryStep, { role: "assistant" }>;

/** The SDK's parameters, plus those of its beta and of older API versions. */
export type Params = Omit<Anthropic.MessageCreateParamsStreaming, "thinking" | "messages"> & {
  messages: Anthropic.MessageParam[];
  thinking?: Anthropic.Beta.BetaThinkingConfigParam;
  temperature?: number;
};

export interface WireOptions {
  readonly model: string;
  readonly settings: ModelSettings;
  readonly keepsOwnIds: boolean;
}

export interface Wire {
  readonly params: Params;
  readonly headers: Readonly<Record<string, string>>;
}

/** The turns that a request leaves out, and the paused reply that it continues. */
interface Context {
  readonly closed?: ClosedTurns | undefined;
  readonly paused?: ModelReply | undefined;
}

export function toWire(
  request: ModelRequest,
  { model, settings: configured, keepsOwnIds }: WireOptions,
  { closed, paused }: Context = {},
): Wire {
  const settings = limited(configured, request.outputLimit);
  const open = request.messages.slice(closed?.messages.length ?? 0);
  const steps = repair(open, {
    ...{ model: request.model.name, callId: CALL_ID, keepsOwnIds },
    ...{ blocksOf: blocksOf(request), after: closed?.ids },
  });
  const wanted = toolChoiceOf(request, settings);
  const thinks = generationOf(model).thinking === "always";
  // A model cannot be forced to call a tool while it thinks. If thinking is optional, it is turned off
  // instead.
  const choice = thinks && forces(wanted) ? "auto" : wanted;
  const thinking = forces(choice) ? NO_THINKING : thinkingOf(model, settings, steps);
  const heats = generationOf(model).temperature && !thinking.params.thinking;
  const temperature = heats ? settings.temperature : undefined;
  const system = systemBlocks(request.system);
  const format = request.output && formatOf(request.output);
  return {
    params: {
      model,
      stream: true,
      max_tokens: maxTokens(settings),
      ...(request.tools.length > 0 ? { tools: tools(request.tools) } : {}),
      ...(choice === undefined ? {} : { tool_choice: toolChoice(choice) }),
      ...(system.length > 0 ? { system } : {}),
      messages: [...cachedToTheEnd(turnsOf(steps)), ...(paused ? [pausedTurn(paused)] : [])],
      ...thinking.params,
      ...(format ? { output_config: { ...effortIn(thinking.params), format } } : {}),
      // The current API version does not support a temperature. The previous version does, for models that
      // accept it.
      ...(temperature === undefined ? {} : { temperature: Math.min(temperature, 1) }),
    },
    headers: {
      ...thinking.headers,
      ...(temperature === undefined ? {} : { "anthropic-version": "2023-06-01" }),
    },
  };
}

/** Returns the provider whose blocks to keep. The blocks of its own tools need the tool in the request. */
export const blocksOf = ({ tools, model }: Pick<ModelRequest, "tools" | "model">): string | undefined =>
  tools.some(({ ofProvider }) => ofProvider) ? model.name.split(":", 1)[0] : undefined;

function toolChoice(choice: ToolChoice): Anthropic.ToolChoice {
  if (typeof choice === "object") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : choice };
}

const formatOf = (output: JsonSchema) => ({
  type: "json_schema" as const,
  schema: { ...(enforceable(output) ?? output) },
});

const effortIn = (params: Pick<Params, "thinking" | "output_config">) => params.output_config ?? {};

const NO_THINKING: { params: Pick<Params, "thinking">; headers: Wire["headers"] } = {
  params: {},
  headers: {},
};
const BINDING = "thinking-binding-controls-2026-08-01";

function thinkingOf(model: string, { thinking: budget }: ModelSettings, steps: readonly HistoryStep[]) {
  const { thinking } = generationOf(model);
  const effort = budget === undefined ? {} : { output_config: { effort: effortOf(budget) } };
  if (thinking === "always") {
    // System blocks, tools and messages may change during a run. The provider must then drop thoughts that
    // belong to the earlier version instead of failing the call.
    const block_binding = { prefix_mismatch_behavior: "drop_block" } as const;
    return {
      params: { thinking: { type: "adaptive", display: "summarized", block_binding }, ...effort } as const,
      headers: { "anthropic-beta": BINDING },
    };
  }
  if (budget === undefined) return NO_THINKING;
  if (thinking === "adaptive")
    return {
      params: { thinking: { type: "adaptive", display: "summarized" }, ...effort } as const,
      headers: {},
    };
  // If a tool loop began without thoughts, for example with another model, it cannot continue with thoughts.
  const last = steps.findLast((step) => step.role === "assistant");
  if (last && last.calls.length > 0 && last.reasoning.length === 0) return NO_THINKING;
  return { params: { thinking: { type: "enabled", budget_tokens: budget } } as const, headers: {} };
}

/**
 * Returns the system prompt. The provider allows four cache marks. This function sets two of them. The others
 * are on the last tool and the last message.
 */
function systemBlocks(blocks: readonly SystemBlock[]): Anthropic.TextBlockParam[] {
  const kinds = (["static", "semi", "dynamic"] as const).map((kind) => {
    const texts = blocks.filter(({ cache, text }) => cache === kind && text.trim() !== "");
    const params = texts.map(({ text }) => ({ type: "text" as const, text: text.toWellFormed() }));
    return kind === "dynamic" ? params : cacheLast(params);
  });
  return kinds.flat();
}

function tools(schemas: readonly ToolSchema[]): Anthropic.ToolUnion[] {
  return cacheLast(
    schemas.map(
      ({ name, description, parameters, ofProvider }): Anthropic.ToolUnion =>
        ofProvider
          ? searchTool(ofProvider)
          : { name, description, input_schema: { ...parameters, type: "object" as const } },
    ),
  );
}

interface Turn {
  readonly role: "user" | "assistant";
  readonly content: Block[];
}

/** Merges consecutive messages of the same role into one turn. */
function turnsOf(steps: readonly HistoryStep[]): Turn[] {
  const turns: Turn[] = [];
  const accepted = acceptedBlocks(steps);
  const add = (role: "user" | "assistant", content: Block[]) => {
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) turns.push({ role, content });
  };
  for (const step of steps) {
    if (step.role === "assistant") {
      add("assistant", replyBlocks({ ...step, blocks: step.blocks.filter((block) => accepted.has(block)) }));
      add("user", step.calls.map(toolResult));
    } else {
      add("user", step.role === "user" ? step.content.map(block) : asUser(step.content));
    }
  }
  return turns;
}

/**
 * With `keepsOwnIds`, the server is a compatible one whose ids may have another format. The blocks of the provider
 * `blocksOf` are kept.
 */
export const wireSteps = (keepsOwnIds: boolean, blocksOf?: string): WireSteps<Turn> => ({
  ...{ callId: CALL_ID, keepsOwnIds, blocksOf },
  write: turnsOf,
});

/**
 * The reply so far, which the provider continues. Its last block may be a call that the provider has not
 * executed yet.
 */
const pausedTurn = ({ content, reasoning, provider_blocks = [] }: ModelReply): Turn => ({
  role: "assistant",
  content: replyBlocks({ text: content, reasoning, calls: [], blocks: provider_blocks }),
});

/** Marks the last block for the cache. */
const cachedToTheEnd = (turns: readonly Turn[]): Anthropic.MessageParam[] =>
  turns.map((turn, index) =>
    index === turns.length - 1 ? { ...turn, content: cacheLast(turn.content) } : turn,
  );

/**
 * Returns a reply in its original order, with each thought and each block of the provider between the texts and calls that
 * surround it.
 */
function replyBlocks({ text, calls, reasoning, blocks: own }: Omit<AssistantStep, "role">): Block[] {
  const blocks: Block[] = [];
  let said = 0;
  let called = 0;
  const say = (characters: number, more: object = {}) => {
    const part = text.slice(said, characters);
    if (part.trim() !== "") blocks.push({ type: "text", text: part, ...more });
    said = Math.max(said, characters);
  };
  const upTo = (characters: number, count: number) => {
    say(characters);
    for (const { id, name, args } of calls.slice(called, count))
      blocks.push({ type: "tool_use", id, name, input: args });
    called = Math.max(called, count);
  };
  for (const each of inOrder(reasoning, own)) {
    if ("data" in each) {
      upTo(each.after_text, each.after_calls);
      if (each.characters === undefined) blocks.push(each.data as unknown as Block);
      else say(each.after_text + each.characters, each.data);
      continue;
    }
    const param = thoughtBlock(each);
    if (!param) continue;
    upTo(numberIn(each, "after_text"), numberIn(each, "after_calls"));
    blocks.push(param);
  }
  upTo(text.length, calls.length);
  return blocks;
}

/** Returns thoughts and the provider's blocks in the order of the reply. */
function inOrder(
  reasoning: readonly Reasoning[],
  own: readonly ProviderBlock[],
): (Reasoning | ProviderBlock)[] {
  let thought = 0;
  const all = own.flatMap((block) => {
    const before = reasoning.slice(thought, block.after_thoughts);
    thought = Math.max(thought, block.after_thoughts);
    return [...before, block];
  });
  return [...all, ...reasoning.slice(thought)];
}

function thoughtBlock({ text, metadata }: Reasoning): Block | undefined {
  const { redacted, signature, unsigned } = metadata ?? {};
  if (typeof redacted === "string") return { type: "redacted_thinking", data: redacted };
  if (typeof signature === "string") return { type: "thinking", thinking: text, signature };
  // The SDK's type includes only signed thoughts.
  return unsigned === true
    ? ({ type: "thinking", thinking: text } as Anthropic.ThinkingBlockParam)
    : undefined;
}

function numberIn({ metadata }: Reasoning, key: string): number {
  const value = metadata?.[key];
  return typeof value === "number" ? value : 0;
}

function toolResult({ id, output, failed }: AnsweredCall): Anthropic.ToolResultBlockParam {
  return {
    type: "tool_result",
    tool_use_id: id,
    content: output.map(block),
    ...(failed ? { is_error: true } : {}),
  };
}

function block(part: Part) {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text } as const;
    case "image": {
      const { media_type, data } = part;
      return { type: "image", source: { type: "base64", media_type, data } } as const;
    }
    case "file":
      if (!isPdf(part)) return { type: "text", text: fileText(part) } as const;
      return {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: part.data },
        title: nameOf(part),
      } as const;
  }
}

/** Converts a system message within a conversation to content that the user sends, marked as a system message. */
function asUser(content: readonly Part[]): Block[] {
  return content.map((part) =>
    part.type === "text" ? { type: "text", text: `<system>\n${part.text}\n</system>` } : block(part),
  );
}

function cacheLast<T extends object>(items: readonly T[]): T[] {
  return items.map((item, index) =>
    index === items.length - 1 ? { ...item, cache_control: { type: "ephemeral" } } : item,
  );
}
