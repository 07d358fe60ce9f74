// The settings of the tools that read and search the web.

import { z } from "zod";
import { HostPattern } from "../../lib/host-patterns.ts";
import { ToolHosts } from "./tool-hosts.ts";

const Hosts = z.array(HostPattern).max(1000);

const SearchService = z
  .strictObject({
    provider: z.enum(["searxng", "brave", "tavily"]).describe("Search service that `web_search` uses."),
    url: z
      .url({ protocol: /^https?$/, error: "must be a URL that begins with http:// or https://" })
      .optional()
      .describe("Address of the service. Required for `searxng`; the others have a default."),
    api_key: z
      .string()
      .min(1)
      .optional()
      .describe("API key for the service. Required for `brave` and `tavily`."),
  })
  .superRefine(({ provider, url, api_key }, context) => {
    const missing = provider === "searxng" ? url === undefined && "url" : api_key === undefined && "api_key";
    if (missing)
      context.addIssue({ code: "custom", path: [missing], message: `is required for \`${provider}\`` });
  });

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
