// The argument that most of the tools share.

import { z } from "zod";
import type { Tool } from "../../core/tool.ts";

export const path = z.string().min(1).describe("Relative to the workspace, or absolute inside it.");
export const folder = path.default(".").describe("Folder to look in. Default: the workspace.");

/** Takes `file_path` for `path`: what models trained on other tools write now and then. */
export function takingFilePath(tool: Tool): Tool {
  return {
    ...tool,
    parse({ file_path, ...args }) {
      return tool.parse(file_path === undefined ? args : { path: file_path, ...args });
    },
  };
}
