// Generation hooks that many programs have: context in front of the conversation, compaction, a log of usage.

import { type Content, type Message, userMessage } from "../../core/message.ts";
import { estimateTokens } from "../../core/messages.ts";
import type { Logger } from "../../lib/logger.ts";
import type { GenerationHook } from "./generation.ts";

/** Before a generation: one user message with this content stands first in what the model is shown. */
export function injectContext(content: Content): GenerationHook {
  return (state) => void state.messages.unshift(userMessage(content));
}

/**
 * Before a generation: from `threshold` estimated tokens on the model is shown what `summarize` makes of the
 * conversation. Skein's own `summarization` does so before each model call, and keeps what it has made.
 */
export function compaction(
  threshold: number,
  summarize: (messages: readonly Message[], signal: AbortSignal) => Promise<readonly Message[]>,
): GenerationHook {
  return async (state) => {
    if (estimateTokens(state.messages) < threshold) return;
    state.messages = [...(await summarize(state.messages, state.run.signal))];
  };
}

/** After a generation: what all its model calls took. */
export function usageLogger(logger: Pick<Logger, "info">): GenerationHook {
  return ({ usage, sessionId }) => {
    if (!usage) return;
    const { input_tokens, output_tokens } = usage;
    logger.info({ session_id: sessionId, input_tokens, output_tokens }, "generation complete");
  };
}
