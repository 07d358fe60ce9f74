// Adds Anthropic's own web search to a request as a tool.

import type { Anthropic } from "@anthropic-ai/sdk";
import type { ProviderBlock } from "../../core/message.ts";
import type { ProviderSearch } from "../../core/model.ts";
import type { HistoryStep } from "../repair.ts";

/**
 * The version that all models and Vertex AI accept. Later versions run the model's code on the results and
 * return the blocks of these programs.
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
 * Returns the blocks that can be sent back to the provider. It rejects a search without a result, which a
 * reply may end with at its limit, and a result without its search. A search next to tool calls is pending.
 * The provider makes it after the calls' results, and its result is in the next reply.
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
