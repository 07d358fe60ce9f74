// The settings of the tools that read and search the web.

import { z } from "zod";
import { HostPattern } from "../../lib/host-patterns.ts";
import { ToolHosts } from "./tool-hosts.ts";

const Hosts = z.array(HostPattern).max(1000);

const Domains = z
  .array(z.string().regex(/^[a-z\d.-]+(\/\S*)?$/i, "must be a domain such as example.com"))
  .min(1)
  .max(100);

const SearchService = z
  .strictObject({
    provider: z
      .enum(["searxng", "brave", "tavily", "model"])
      .describe("Search service that `web_search` uses. With `model`, the model's own provider searches."),
    url: z
      .url({ protocol: /^https?$/, error: "must be a URL that begins with http:// or https://" })
      .optional()
      .describe("Address of the service. Required for `searxng`; the others have a default."),
    api_key: z
      .string()
      .min(1)
      .optional()
      .describe("API key for the service. Required for `brave` and `tavily`."),
    max_uses: z
      .int()
      .min(1)
      .max(100)
      .optional()
      .describe("Only for `model`: maximum number of searches in one model call."),
    allowed_domains: Domains.optional().describe("Only for `model`: the only domains to search."),
    blocked_domains: Domains.optional().describe("Only for `model`: domains to exclude from the search."),
  })
  .superRefine((search, context) => {
    for (const { path, message } of faultsIn(search)) context.addIssue({ code: "custom", path, message });
  });

type SearchKeys = Partial<Record<"url" | "api_key" | (typeof OF_MODELS)[number], unknown>>;

const OF_MODELS = ["max_uses", "allowed_domains", "blocked_domains"] as const;
const OF_SERVICES = ["url", "api_key"] as const;

function faultsIn({ provider, ...keys }: { readonly provider: string } & SearchKeys) {
  const needed = { searxng: "url", brave: "api_key", tavily: "api_key" }[provider];
  const missing = needed !== undefined && keys[needed as keyof SearchKeys] === undefined ? [needed] : [];
  const surplus = (provider === "model" ? OF_SERVICES : OF_MODELS).filter((key) => keys[key] !== undefined);
  const isBoth = keys.allowed_domains !== undefined && keys.blocked_domains !== undefined;
  return [
    ...missing.map((key) => ({ path: [key], message: `is required for \`${provider}\`` })),
    ...surplus.map((key) => ({ path: [key], message: `does not apply to \`${provider}\`` })),
    ...(isBoth
      ? [{ path: ["blocked_domains"], message: "cannot be used together with `allowed_domains`" }]
      : []),
  ];
}

export const Web = z.strictObject({
  allow: Hosts.optional().describe(
    "Hosts that `web_fetch` can read, such as `example.com` or `*.example.com`. Default: all public hosts.",
  ),
  deny: Hosts.default([]).describe("Hosts that `web_fetch` never reads."),
  private: ToolHosts.default("").describe(
    "Private addresses that `web_fetch` can read too: `host` or `host:port`, separated by commas.",
  ),
  robots: z
    .enum(["respect", "ignore"])
    .default("respect")
    .describe("How `web_fetch` treats a site's robots.txt."),
  search: SearchService.optional().describe(
    "Search service for `web_search`. Without it, no agent has this tool.",
  ),
});
