// The port to a language model, with one method that always streams.

import { z } from "zod";
import { globMatcher } from "../../lib/glob.ts";
import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import type {
  AssistantMessage,
  Citation,
  Message,
  ProviderBlock,
  Reasoning,
  ToolCall,
  Usage,
  WebSource,
} from "./message.ts";
import type { DeltaSink, Stream } from "./stream.ts";

/** Why the model stopped. */
export type StopReason = "end_turn" | "tool_use" | "max_tokens" | "stop_sequence" | "refusal";

/**
 * A block of the system prompt. `static` never changes for an agent, `semi` changes rarely (skills, memory),
 * `dynamic` may change with every call. Blocks are sent in this order so providers can cache the prefix.
 */
export interface SystemBlock {
  readonly id: string;
  readonly text: string;
  readonly cache: "static" | "semi" | "dynamic";
  /** The id of the block whose position this block takes among the blocks of its kind. Default: its own id. */
  readonly place?: string;
}

export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  /**
   * Set for a tool that the model's provider executes during the call. It is offered only to models with
   * `searches`.
   */
  readonly ofProvider?: ProviderSearch;
}

/** The options of the web search that a model's provider executes. */
export interface ProviderSearch {
  /** The maximum number of searches in one model call. */
  readonly max_uses?: number | undefined;
  /** The only domains to search. */
  readonly allowed_domains?: readonly string[] | undefined;
  readonly blocked_domains?: readonly string[] | undefined;
}

export const ToolChoice = z
  .union([z.enum(["auto", "none", "required"]), z.strictObject({ name: z.string().min(1).max(128) })])
  .describe(
    "`auto`: the model decides whether to call tools. `none`: the model calls no tools. `required`: the model calls at least one tool. `name`: the model calls this tool. The requirement ends once a tool has been called after the user's last message.",
  );
export type ToolChoice = z.infer<typeof ToolChoice>;

export const ModelSettings = z.object({
  temperature: z
    .number()
    .min(0)
    .max(2)
    .optional()
    .describe("Sampling temperature. Anthropic accepts at most 1."),
  max_tokens: z
    .int()
    .positive()
    .optional()
    .describe(
      "Maximum number of tokens in one answer. Default: 8,192 for Anthropic and under a budget, otherwise the provider's own.",
    ),
  thinking: z.int().min(1024).optional().describe("Maximum number of tokens for thinking."),
  tool_choice: ToolChoice.optional(),
});
export type ModelSettings = z.infer<typeof ModelSettings>;

export interface ModelRequest {
  /** The model to call. A hook may pass another model to `next`. */
  readonly model: Model;
  readonly system: readonly SystemBlock[];
  readonly messages: readonly Message[];
  /** The tools, sorted by name, so requests share a prefix that providers can cache. */
  readonly tools: readonly ToolSchema[];
  readonly settings: ModelSettings;
  /**
   * The JSON Schema of an object. The final answer (the reply without tool calls) must be JSON that matches
   * this schema.
   */
  readonly output?: JsonSchema;
  /**
   * True if a tool was called after the user's last message. In that case, a `tool_choice` that requires a
   * call is already satisfied.
   */
  readonly toolCalled?: boolean;
  readonly signal: AbortSignal;
  /**
   * The tenant on whose behalf the call is made. Tenants take turns with long work. Undefined outside runs.
   */
  readonly tenant?: string;
  /** The W3C `traceparent` of the call. Sent to the operator's gateways but not to providers. */
  readonly traceparent?: string;
  /**
   * The maximum number of output tokens, including thinking. Sent to every provider. Lowers `max_tokens` and
   * `thinking`.
   */
  readonly outputLimit?: number;
  /** Called once when an answer ends early, with the usage that the provider has reported so far. */
  readonly onPartialUsage?: (usage: Usage) => void;
  /** Called when the call begins, with a meter that measures the call's usage. */
  readonly onMeter?: (meter: UsageMeter) => void;
}

/** Measures the usage of one call. */
export interface UsageMeter {
  /** Measures a delta of the answer as it passes. */
  take(event: StreamEvent): void;
  /** Records the provider's usage of an answer that ends early. */
  report(usage: Usage): void;
  /**
   * Returns the usage of a complete answer: the provider's counts, or an estimate where they are missing or
   * far too low.
   */
  whole(reply: ModelReply): Usage;
  /** Returns the usage of an answer that ended early, or undefined when nothing was used. */
  soFar(): Usage | undefined;
}

/**
 * The `max_tokens` of an answer, excluding thinking, for requests that need a limit when none is configured.
 */
export const DEFAULT_MAX_TOKENS = 8192;

export interface ModelReply {
  readonly content: string;
  readonly tool_calls: readonly ToolCall[];
  readonly reasoning: readonly Reasoning[];
  readonly stop_reason: StopReason;
  readonly usage: Usage;
  /** Blocks of the provider's own tools, in the order of the reply. */
  readonly provider_blocks?: readonly ProviderBlock[];
  /** The pages that the provider's search found. Undefined if no search succeeded. */
  readonly sources?: readonly WebSource[];
  readonly citations?: readonly Citation[];
  readonly remark?: Remark;
}

/** A log message about an unexpected provider reply. Completes "The provider …". */
export interface Remark {
  readonly code: "unknown_stop_reason" | "low_count";
  readonly message: string;
}

/** A model's reply as a message for the thread. */
export interface Completion {
  readonly message: AssistantMessage;
  readonly stop_reason: StopReason;
}

export interface Model {
  /** `provider:model`, as configured. Messages record it as their author. */
  readonly name: string;
  /** Set for models that call no provider. Their answers cost no tokens. */
  readonly isFree?: true;
  /** True if the model's provider executes tools that have `ofProvider`. */
  readonly searches?: true;
  /** True if its provider's search cannot be limited to domains. */
  readonly searchesEverywhere?: true;
  /** True if its provider searches in every answer, even if the request does not offer the search. */
  readonly alwaysSearches?: true;
  /** The model to call when this one remains unavailable. */
  readonly fallback?: Model | undefined;
  /**
   * Returns the maximum number of tokens in the provider's answer to `request`, including thinking, if the
   * request has no `outputLimit`. Returns undefined if the provider decides.
   */
  outputLimit?(request: ModelRequest): number | undefined;
  /**
   * Yields only `on_chat_model_stream` events, without the deltas that `deltas` takes. Returns the complete
   * reply. Throws an `AppError` with a `model_*` code or `context_overflow`. Ends at once when
   * `request.signal` aborts. Accepts any history and repairs parts that a provider would reject.
   */
  stream(request: ModelRequest, deltas?: DeltaSink): Stream<ModelReply>;
}

/** A glob over model names (`provider:model`). `*` also matches the `/` in names. */
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

/** Throws a `SyntaxError` for an invalid pattern. */
export function modelMatcher(pattern: string): (model: string) => boolean {
  const whole = (text: string) => text.replaceAll("/", "\u2215");
  const matches = globMatcher(whole(pattern));
  return (model) => matches(whole(model));
}
