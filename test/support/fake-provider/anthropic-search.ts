// Anthropic's own web search: its seals, and its checks of blocks that come back.

import { createHmac } from "node:crypto";
import { z } from "zod";
import type { Page } from "./script.ts";

const seal = (...texts: readonly string[]) =>
  createHmac("sha256", "fake search").update(JSON.stringify(texts)).digest("base64url");

/** The text of blocks. Spaces do not count. */
export const textsIn = (content: readonly { readonly type: string; readonly text?: unknown }[]): string =>
  content
    .map(({ type, text }) => (type === "text" ? String(text) : ""))
    .join("")
    .replace(/\s+/g, "");

/** A page is sealed with the text before it, so that one that comes back elsewhere is noticed. */
export const pageSeal = ({ url, title }: Page, before: string): string => seal("page", url, title, before);

const CITED = "words of the page";

export const citation = ({ url, title }: Page) => ({
  ...{ type: "web_search_result_location" as const, cited_text: CITED, url, title },
  encrypted_index: seal("citation", url, title),
});

const Citation = z.strictObject({
  type: z.literal("web_search_result_location"),
  cited_text: z.string(),
  url: z.string(),
  title: z.string(),
  encrypted_index: z.string(),
});
export const Citations = z.array(Citation).optional();

const caller = z.strictObject({ type: z.literal("direct") }).optional();
const cache_control = z.strictObject({ type: z.literal("ephemeral") }).optional();

export const ServerToolUse = z.strictObject({
  type: z.literal("server_tool_use"),
  id: z.string().regex(/^srvtoolu_[a-zA-Z0-9_]+$/),
  name: z.literal("web_search"),
  input: z.strictObject({ query: z.string() }),
  caller,
  cache_control,
});
export const SearchResult = z.strictObject({
  type: z.literal("web_search_tool_result"),
  tool_use_id: z.string(),
  content: z.union([
    z.array(
      z.strictObject({
        type: z.literal("web_search_result"),
        url: z.string(),
        title: z.string(),
        encrypted_content: z.string(),
        page_age: z.string().nullish(),
      }),
    ),
    z.strictObject({
      type: z.literal("web_search_tool_result_error"),
      error_code: z.enum(["max_uses_exceeded", "too_many_requests", "query_too_long", "unavailable"]),
    }),
  ]),
  caller,
  cache_control,
});
export const SearchTool = z.strictObject({
  type: z.enum(["web_search_20250305", "web_search_20260209", "web_search_20260318"]),
  name: z.literal("web_search"),
  max_uses: z.int().positive().optional(),
  allowed_domains: z.array(z.string()).min(1).optional(),
  blocked_domains: z.array(z.string()).min(1).optional(),
  cache_control,
});

const Blocks = z.array(
  z.union([ServerToolUse, SearchResult, z.looseObject({ type: z.string(), citations: Citations })]),
);
type Blocks = z.infer<typeof Blocks>;

interface SearchBody {
  readonly messages: readonly { readonly role: string; readonly content: readonly object[] }[];
  readonly tools?: readonly object[] | undefined;
}

const isSearchTool = (tool: object) => SearchTool.safeParse(tool).success;

/** What is wrong with the provider's own blocks, as its sentence. */
export function searchFault({ messages, tools = [] }: SearchBody): string | undefined {
  const tool = tools.map((each) => SearchTool.safeParse(each).data).find(Boolean);
  if (tool?.allowed_domains && tool.blocked_domains)
    return "tools: only one of allowed_domains and blocked_domains may be specified";
  for (const [index, { role, content }] of messages.entries()) {
    const blocks = Blocks.parse(content);
    const own = blocks.filter(({ type }) => type === "server_tool_use" || type === "web_search_tool_result");
    if (own.length > 0 && role === "user")
      return `messages.${index}: user messages cannot contain server tools`;
    if (own.length > 0 && !tools.some(isSearchTool)) return "tools: web_search is not among the tools";
    const fault = sealFault(blocks);
    if (fault) return `messages.${index}.content: ${fault}`;
  }
  return pairFault(
    messages.filter(({ role }) => role === "assistant").map(({ content }) => Blocks.parse(content)),
  );
}

/** A search beside calls of tools is made once their results are there: its result is in the next reply. */
function pairFault(replies: readonly Blocks[]): string | undefined {
  let open = new Set<string>();
  for (const [index, blocks] of replies.entries()) {
    const before = open;
    open = new Set();
    for (const block of blocks) {
      const use = ServerToolUse.safeParse(block).data;
      const result = SearchResult.safeParse(block).data;
      if (use) open.add(use.id);
      if (result && !open.delete(result.tool_use_id) && !before.delete(result.tool_use_id))
        return `unexpected \`web_search_tool_result\` block with id ${result.tool_use_id}`;
    }
    const isLast = index === replies.length - 1;
    const [left] = blocks.some(({ type }) => type === "tool_use") || isLast ? before : [...before, ...open];
    if (left !== undefined)
      return `\`web_search\` tool use with id \`${left}\` was found without a corresponding \`web_search_tool_result\` block`;
  }
  return undefined;
}

function sealFault(blocks: Blocks): string | undefined {
  for (const [at, block] of blocks.entries()) {
    const use = ServerToolUse.safeParse(block).data;
    if (use && !use.id.startsWith(`srvtoolu_${Buffer.from(use.input.query).toString("hex")}_`))
      return `${at}: Invalid \`input\` in \`server_tool_use\` block`;
    const { content } = SearchResult.safeParse(block).data ?? {};
    const before = textsIn(blocks.slice(0, at));
    if (Array.isArray(content) && content.some((page) => page.encrypted_content !== pageSeal(page, before)))
      return `${at}: Invalid \`encrypted_content\` in \`web_search_result\` block`;
    const cited = "citations" in block ? (Citations.parse(block.citations) ?? []) : [];
    if (cited.some((each) => each.encrypted_index !== citation(each).encrypted_index))
      return `${at}: Invalid \`encrypted_index\` in citation`;
  }
  return undefined;
}
