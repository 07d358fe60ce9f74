// Anthropic's own web search, as a tool of a request.

import type { Anthropic } from "@anthropic-ai/sdk";
import type { ProviderBlock } from "../../core/message.ts";
import type { ProviderSearch } from "../../core/model.ts";
import type { HistoryStep } from "../repair.ts";

/**
 * The version that each model and Vertex AI accept. Later versions run the model's code on the results, and bring the
 * blocks of these programs.
 */
const VERSION = "web_search_20250305";

export function searchTool({
  max_uses,
  allowed_domains,
  blocked_domains,
}: ProviderSearch): Anthropic.WebSearchTool20250305 {
  return {
    ...{ type: VERSION, name: "web_search" },
    ...(max_uses === undefined ? {} : { max_uses }),
    ...(allowed_domains ? { allowed_domains: [...allowed_domains] } : {}),
    ...(blocked_domains ? { blocked_domains: [...blocked_domains] } : {}),
  };
}

/**
 * The blocks that the provider accepts back. It refuses a search without a result, as a reply at its limit ends with, and a result
 * without its search. A search beside calls of tools is pending: the provider makes it after their results, and its result is in
 * the next reply.
 */
export function acceptedBlocks(steps: readonly HistoryStep[]): ReadonlySet<ProviderBlock> {
  const replies = steps.filter((step) => step.role === "assistant");
  const blocks = replies.flatMap((step) => step.blocks);
  if (blocks.length === 0) return NONE;
  const last = replies.at(-1);
  const pending = last && last.calls.length > 0 ? last.blocks : [];
  const answered = new Set([
    ...blocks.map(({ data }) => data.tool_use_id),
    ...pending.map(({ data }) => data.id),
  ]);
  const made = new Set<unknown>();
  return new Set(
    blocks.filter(({ data: { type, id, tool_use_id } }) => {
      if (type !== "server_tool_use") return tool_use_id === undefined || made.has(tool_use_id);
      made.add(id);
      return answered.has(id);
    }),
  );
}

const NONE: ReadonlySet<ProviderBlock> = new Set();
