// The port to a language model: one method, always streaming.

import { z } from "zod";
import { globMatcher } from "../../lib/glob.ts";
import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import type { AssistantMessage, Message, Reasoning, ToolCall, Usage } from "./message.ts";
import type { DeltaSink, Stream } from "./stream.ts";

/** Why the model stopped speaking. */
export type StopReason = "end_turn" | "tool_use" | "max_tokens" | "stop_sequence" | "refusal";

/**
 * A piece of the system prompt. `static` never changes for an agent, `semi` changes rarely (skills, memory),
 * `dynamic` may change at every call. Blocks are sent in that order, for the provider's cache.
 */
export interface SystemBlock {
  readonly id: string;
  readonly text: string;
  readonly cache: "static" | "semi" | "dynamic";
  /** The id of the block whose position, within its kind, it takes. Default: its own id. */
  readonly place?: string;
}

export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
}

export const ToolChoice = z
  .union([z.enum(["auto", "none", "required"]), z.strictObject({ name: z.string().min(1).max(128) })])
  .describe(
    "`auto`: the model decides whether to call tools. `none`: it calls none. `required`: it calls at least one. `name`: it calls this tool. The requirement ends once a tool was called after the user's last message.",
  );
export type ToolChoice = z.infer<typeof ToolChoice>;

export const ModelSettings = z.object({
  temperature: z
    .number()
    .min(0)
    .max(2)
    .optional()
    .describe("Sampling temperature. Anthropic takes at most 1."),
  max_tokens: z
    .int()
    .positive()
    .optional()
    .describe(
      "Maximum tokens of one answer. Default: 8,192 for Anthropic and under a budget, otherwise the provider's own.",
    ),
  thinking: z.int().min(1024).optional().describe("Maximum tokens for thinking."),
  tool_choice: ToolChoice.optional(),
});
export type ModelSettings = z.infer<typeof ModelSettings>;

export interface ModelRequest {
  /** The model to ask. A hook may pass another one to `next`. */
  readonly model: Model;
  readonly system: readonly SystemBlock[];
  readonly messages: readonly Message[];
  /** Sorted by name, so that requests begin alike and providers can cache them. */
  readonly tools: readonly ToolSchema[];
  readonly settings: ModelSettings;
  /** JSON Schema of an object: the final answer, the one without tool calls, is to be JSON of it and nothing else. */
  readonly output?: JsonSchema;
  /** Whether a tool was called since the user's last message: a `tool_choice` that forces a call is then fulfilled. */
  readonly toolCalled?: boolean;
  readonly signal: AbortSignal;
  /** For whom: long work with it takes turns with other tenants'. Absent of a request that no run makes. */
  readonly tenant?: string;
  /** W3C `traceparent` of the call. For gateways of the operator, not for providers. */
  readonly traceparent?: string;
  /** The most tokens of the answer, thinking included. Sent to every provider; lowers `max_tokens` and `thinking`. */
  readonly outputLimit?: number;
  /** Called once, when an answer that has begun ends early: what the provider has counted of it so far. */
  readonly onPartialUsage?: (usage: Usage) => void;
  /** Called when the call begins, with what measures its usage. */
  readonly onMeter?: (meter: UsageMeter) => void;
}

/** Measures what one call uses. */
export interface UsageMeter {
  /** Looks at what the model says as it passes. */
  take(event: StreamEvent): void;
  /** Takes what the provider has counted of an answer that ends early. */
  report(usage: Usage): void;
  /** The usage of a whole answer: the provider's counts, and an estimate where they are missing or far too low. */
  whole(reply: ModelReply): Usage;
  /** The usage of an answer that ended early; undefined when there is nothing to pay. */
  soFar(): Usage | undefined;
}

/** The `max_tokens` of an answer, besides its thinking, where a limit is needed and none is configured. */
export const DEFAULT_MAX_TOKENS = 8192;

export interface ModelReply {
  readonly content: string;
  readonly tool_calls: readonly ToolCall[];
  readonly reasoning: readonly Reasoning[];
  readonly stop_reason: StopReason;
  readonly usage: Usage;
  readonly remark?: Remark;
}

/** A line of the log about a provider's odd reply. Completes "The provider …". */
export interface Remark {
  readonly code: "unknown_stop_reason" | "low_count";
  readonly message: string;
}

/** A reply as the message for the thread. */
export interface Completion {
  readonly message: AssistantMessage;
  readonly stop_reason: StopReason;
}

export interface Model {
  /** `provider:model`, as configured; also what a message remembers as its author. */
  readonly name: string;
  /** No provider is asked: its answers use no tokens. */
  readonly isFree?: true;
  /** Asked when this one stays unavailable. */
  readonly fallback?: Model | undefined;
  /**
   * The most tokens that the provider may answer `request` with, thinking included, without an `outputLimit`.
   * Undefined: as many as the provider likes.
   */
  outputLimit?(request: ModelRequest): number | undefined;
  /**
   * Yields only `on_chat_model_stream` events, those that `deltas` does not take; returns the finished reply. Throws `AppError`
   * with a `model_*` code or `context_overflow`. Ends at once when `request.signal` aborts. Accepts any history: repairs what a
   * provider would refuse.
   */
  stream(request: ModelRequest, deltas?: DeltaSink): Stream<ModelReply>;
}

/** A glob over names of models, `provider:model`. `*` also matches the `/` in names. */
export const ModelPattern = z
  .string()
  .min(1)
  .superRefine((pattern, context) => {
    try {
      modelMatcher(pattern);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      context.addIssue({ code: "custom", message: `is not a pattern of model names: it ${error.message}` });
    }
  });

/** Throws a `SyntaxError`. */
export function modelMatcher(pattern: string): (model: string) => boolean {
  const whole = (text: string) => text.replaceAll("/", "\u2215");
  const matches = globMatcher(whole(pattern));
  return (model) => matches(whole(model));
}
