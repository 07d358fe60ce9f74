// Measures the tokens of a model call. Uses the provider's counts, or an estimate where they are missing. Budgets, runs and
// threads all use the same numbers.

import {
  assistantMessage,
  BYTES_A_TOKEN,
  estimateTokens,
  NO_USAGE,
  textSize,
  type Usage,
} from "./message.ts";
import type { ModelReply, ModelRequest, UsageMeter } from "./model.ts";

/** The length of the longest answer that any model gives, in tokens. */
export const LONGEST_ANSWER_TOKENS = 128_000;
/** The upper limit for any token count. No call can use that many tokens. */
const LIMIT = 1e12;
/** The assumed speed of hidden thinking, in tokens per second. Most models think more slowly. */
const TOKENS_A_SECOND = 100;

/** Estimates the tokens of messages, system prompt and tool schemas. */
export function estimateRequest({ messages, system, tools }: ModelRequest): number {
  return estimateTokens(messages) + estimateFixed({ system, tools });
}

/**
 * The margin for reserving input. It is needed because estimates are inexact. Few natural or programming
 * languages need less than three bytes per token.
 */
const INPUT_MARGIN = 4 / 3;

/** Returns the tokens to reserve for an estimated input. */
export const withMargin = (tokens: number) => Math.ceil(tokens * INPUT_MARGIN);

/** Estimates the tokens of the system prompt and tool schemas. */
export function estimateFixed({ system, tools }: Pick<ModelRequest, "system" | "tools">): number {
  let fixed = textSize(JSON.stringify(tools));
  for (const block of system) fixed += textSize(block.text);
  return Math.ceil(fixed / BYTES_A_TOKEN);
}

/** Creates the meter of a call. Create it when the call begins. */
export function usageMeter(request: ModelRequest): UsageMeter {
  const asked = performance.now();
  let spoke: number | undefined;
  let thought = 0;
  let said = 0;
  let reported: Usage | undefined;
  let early: Usage | undefined;

  const heard = () => {
    // Providers may send the full thinking, a summary, or nothing.
    const silence = ((spoke ?? performance.now()) - asked) / 1000;
    return Math.ceil(Math.max(thought / BYTES_A_TOKEN, silence * TOKENS_A_SECOND) + said / BYTES_A_TOKEN);
  };

  return {
    take({ event, data }) {
      if (event !== "on_chat_model_stream") return;
      if ("reasoning_delta" in data) {
        thought += textSize(data.reasoning_delta);
        return;
      }
      spoke ??= performance.now();
      said += textSize("delta" in data ? data.delta : data.tool_call.args_delta);
    },
    report(usage) {
      reported = usage;
    },
    whole(reply) {
      const usage = plausible(reply.usage);
      return estimated(usage, {
        input_tokens: usage.input_tokens || estimateRequest(request),
        output_tokens: believable(usage.output_tokens, estimateReply(reply)),
      });
    },
    soFar() {
      const isPaid = reported !== undefined || spoke !== undefined || thought > 0 || request.signal.aborted;
      if (!isPaid) return undefined;
      // The estimate grows with time. The run and its budget must count the same usage, so keep the first
      // estimate.
      early ??= usageSoFar();
      return early;
    },
  };

  function usageSoFar(): Usage {
    const usage = plausible(reported ?? NO_USAGE);
    const most = request.outputLimit ?? request.model.outputLimit?.(request) ?? LONGEST_ANSWER_TOKENS;
    return estimated(usage, {
      input_tokens: usage.input_tokens || estimateRequest(request),
      output_tokens: Math.max(usage.output_tokens, Math.min(heard(), most)),
    });
  }
}

/**
 * The minimum difference in tokens between the provider's count and the estimate at which the count may be
 * considered wrong. Estimates of short texts are rough.
 */
const LEAST_DOUBT = 256;

/** Returns the count, or the estimate if the count is less than half of it. */
const believable = (counted: number, estimate: number) =>
  counted === 0 || (counted < estimate / 2 && estimate - counted > LEAST_DOUBT) ? estimate : counted;

function estimateReply({ content, tool_calls }: ModelReply): number {
  if (content.length === 0 && tool_calls.length === 0) return 0;
  return estimateTokens([assistantMessage(content, ...tool_calls)]);
}

/** Returns `usage` with these counts, marked as estimated if they differ from the original. */
function estimated(usage: Usage, counts: Pick<Usage, "input_tokens" | "output_tokens">): Usage {
  const isOther = counts.input_tokens !== usage.input_tokens || counts.output_tokens !== usage.output_tokens;
  return { ...usage, ...counts, ...(isOther ? { estimated: true } : {}) };
}

/** Replaces impossible numbers in `usage` with 0. */
export function plausible(usage: Usage): Usage {
  const whole = (tokens: number) => (tokens > 0 && tokens < LIMIT ? Math.ceil(tokens) : 0);
  return {
    ...usage,
    input_tokens: whole(usage.input_tokens),
    output_tokens: whole(usage.output_tokens),
    cache_read_tokens: whole(usage.cache_read_tokens),
    cache_write_tokens: whole(usage.cache_write_tokens),
    ...(usage.web_searches === undefined ? {} : { web_searches: whole(usage.web_searches) }),
  };
}
