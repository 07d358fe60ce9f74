// The tools that read and search the web, for agents in a program.

import type { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import type { Tool } from "../../agent/core/tool.ts";
import { createWebTools } from "../../agent/tools/web/index.ts";
import { check, sentence } from "../../lib/check.ts";
import { Web } from "../../server/config/web.ts";

/**
 * Creates the tools from the keys of `web` in server.yaml without opening anything. The worker threads that read
 * documents end on their own. Throws `config_invalid` with all problems, one per line.
 */
export function webTools(options: z.input<typeof Web> = {}): readonly Tool[] {
  const checked = check(Web, options);
  if ("value" in checked) return createWebTools(checked.value, "Skein").tools;
  const problems = checked.faults.map((fault) => `webTools: ${sentence(fault)}`);
  throw new AppError("config_invalid", problems.join("\n"));
}
