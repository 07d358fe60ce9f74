// ls, glob and grep: what there is.

import { z } from "zod";
import type { Backend } from "../../core/backend.ts";
import { defineTool, type Tool } from "../../core/tool.ts";
import { folder, takingFilePath } from "./path.ts";

const annotations = { readOnly: true, category: "read", requiresPermission: false } as const;

const MAX_LISTED = 1000;

export function ls(backend: Backend): Tool {
  return takingFilePath(
    defineTool({
      name: "ls",
      description: "List a folder: name, type and size in bytes of what is in it.",
      parameters: z.object({ path: folder }),
      annotations,
      async execute({ path }, _call, run) {
        const entries = await backend.list(path, run.signal);
        const shown = entries.slice(0, MAX_LISTED).map(({ path, type, size }) => ({
          name: path.slice(path.lastIndexOf("/") + 1),
          type,
          size,
        }));
        const isWhole = entries.length <= MAX_LISTED;
        return withNotice(shown, isWhole, `Only the first ${MAX_LISTED} entries. Use glob to find others.`);
      },
    }),
  );
}

export function glob(backend: Backend): Tool {
  return takingFilePath(
    defineTool({
      name: "glob",
      description:
        "Find files by name. `*.py` finds names at any depth, `src/**/*.ts` whole paths; also ?, [a-z] and {a,b}. Returns absolute paths.",
      parameters: z.object({ pattern: z.string().min(1), path: folder }),
      annotations,
      async execute({ pattern, path }, _call, run) {
        const { matches, truncated } = await backend.glob(pattern, path, run.signal);
        return withNotice(matches, !truncated, "There are more. Use a narrower pattern or path.");
      },
    }),
  );
}

export function grep(backend: Backend): Tool {
  return takingFilePath(
    defineTool({
      name: "grep",
      description:
        "Find lines in files by regular expression (RE2: no look-around or back-references; (?i) ignores case).",
      parameters: z.object({
        pattern: z.string().min(1),
        path: folder.describe("Folder or file to search. Default: the workspace."),
        include: z.string().min(1).optional().describe("Only files that match this glob, for example *.ts."),
      }),
      annotations,
      async execute({ pattern, path, include }, _call, run) {
        return JSON.stringify(await backend.grep(pattern, path, include, run.signal));
      },
    }),
  );
}

const withNotice = (list: readonly unknown[], isWhole: boolean, notice: string) =>
  JSON.stringify(list) + (isWhole ? "" : `\n\n[${notice}]`);
