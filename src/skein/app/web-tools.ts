// The tools with which this server's agents read the web.

import packageJson from "../../../package.json" with { type: "json" };
import { createWebTools, type WebTools } from "../../agent/tools/web/index.ts";
import type { ServerConfig } from "../../server/config/server.ts";

/** Opens nothing before a tool is called. The caller closes it. */
export const webTools = ({ web }: Pick<ServerConfig, "web">): WebTools =>
  createWebTools(web, `Skein/${packageJson.version} (+${packageJson.homepage})`);
