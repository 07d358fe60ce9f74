// The tools of this server that its agents may use. They read the web and create schedules.

import packageJson from "../../../package.json" with { type: "json" };
import { AppError } from "../../agent/core/errors.ts";
import type { OwnSchedules } from "../../agent/core/own-schedules.ts";
import type { Tool } from "../../agent/core/tool.ts";
import { scheduleTools } from "../../agent/tools/schedules.ts";
import { createWebTools } from "../../agent/tools/web/index.ts";
import type { ServerConfig } from "../../server/config/server.ts";

export interface OwnTools {
  readonly tools: readonly Tool[];
  close(): Promise<void>;
}

/**
 * Opens nothing until a tool is called. `schedules` is undefined until the server has opened. The caller closes the
 * tools.
 */
export function ownTools(
  { web }: Pick<ServerConfig, "web">,
  schedules: () => OwnSchedules | undefined = () => undefined,
): OwnTools {
  const ofWeb = createWebTools(web, `Skein/${packageJson.version} (+${packageJson.homepage})`);
  const open = () => {
    const found = schedules();
    if (found) return found;
    throw new AppError("unavailable", "The server has not opened its schedules yet.");
  };
  return { tools: [...ofWeb.tools, ...scheduleTools(open)], close: ofWeb.close };
}
