// The tool that gives the model a skill's instructions, as they are now, and tells where the skill's other files are.

import { posix } from "node:path";
import { z } from "zod";
import type { Backend } from "../../core/backend.ts";
import { defineTool, failed, type Tool } from "../../core/tool.ts";
import { didYouMean } from "../../lib/nearest.ts";
import { fileText } from "../file-text.ts";
import { instructionsIn, type Skill } from "./parse.ts";

const MAX_BYTES = 64 * 1024;

export function loadSkill(skills: () => readonly Skill[], backend: Backend): Tool {
  return defineTool({
    name: "load_skill",
    description: "Gives you the full instructions of a skill, and the folder where its files are.",
    parameters: z.strictObject({ name: z.string().describe("As it stands among the available skills.") }),
    annotations: { readOnly: true, category: "read", requiresPermission: false },
    async execute({ name }, _, { signal }) {
      const paths = new Map(skills().map(({ name, path }) => [name, path]));
      const path = paths.get(name);
      if (path === undefined)
        return failed(`There is no skill \`${name}\`${didYouMean(name, paths.keys()) || "."}`);
      const file = await fileText(backend, path, MAX_BYTES, signal);
      if (!file) return failed(`The skill \`${name}\` is gone: there is no file \`${path}\`.`);
      const folder = posix.relative(backend.workdir, posix.dirname(path)) || ".";
      const rest = file.truncated ? `\n\n[It goes on after ${MAX_BYTES / 1024} KiB: read \`${path}\`.]` : "";
      return `# ${name}\n\nFolder: ${folder}\n\n${instructionsIn(file.text)}${rest}`;
    },
  });
}
