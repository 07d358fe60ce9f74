// Settings of the tools that read and search the web.

import { z } from "zod";
import { HostPattern } from "../../lib/host-patterns.ts";
import { ToolHosts } from "./tool-hosts.ts";

const Hosts = z.array(HostPattern).max(1000);

const SearchService = z
  .strictObject({
    provider: z.enum(["searxng", "brave", "tavily"]).describe("Service that `web_search` asks."),
    url: z
      .url({ protocol: /^https?$/, error: "must be a URL that begins with http:// or https://" })
      .optional()
      .describe("Address of the service. `searxng` needs one; the others have their own."),
    api_key: z.string().min(1).optional().describe("Key of the service. `brave` and `tavily` need one."),
  })
  .superRefine(({ provider, url, api_key }, context) => {
    const missing = provider === "searxng" ? url === undefined && "url" : api_key === undefined && "api_key";
    if (missing)
      context.addIssue({ code: "custom", path: [missing], message: `is required for \`${provider}\`` });
  });

export const Web = z.strictObject({
  allow: Hosts.optional().describe(
    "Hosts that `web_fetch` may read, such as `example.com` or `*.example.com`. Default: all public hosts.",
  ),
  deny: Hosts.default([]).describe("Hosts that `web_fetch` never reads."),
  private: ToolHosts.default("").describe(
    "Private addresses that `web_fetch` may read as well: `host` or `host:port`, separated by commas.",
  ),
  robots: z
    .enum(["respect", "ignore"])
    .default("respect")
    .describe("Effect of the robots.txt of a site on `web_fetch`."),
  search: SearchService.optional().describe("Service of `web_search`. Without it, no agent has that tool."),
});
