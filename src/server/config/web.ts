// Settings of the tools that read the web.

import { z } from "zod";
import { HostPattern } from "../../lib/host-patterns.ts";
import { ToolHosts } from "./tool-hosts.ts";

const Hosts = z.array(HostPattern).max(1000);

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
});
