// Skills are folders with a SKILL.md. Skills with a description are listed in the system prompt and loaded on demand. All
// other skills are part of the prompt.

import { posix } from "node:path";
import { z } from "zod";
import { didYouMean } from "../../../lib/did-you-mean.ts";
import { xmlTag } from "../../../lib/text.ts";
import { warning } from "../../../protocol/event.ts";
import type { Backend } from "../../core/backend.ts";
import { defineHook } from "../../core/hook.ts";
import type { SystemBlock } from "../../core/model.ts";
import { defineTool, failed, type Tool } from "../../core/tool.ts";
import { fileText } from "../memory.ts";
import { discover, instructionsIn, type Skill } from "./skill-files.ts";

/**
 * The maximum number of characters in all inline skills together. Skills that do not fit are listed instead.
 */
const MAX_INLINE_CHARS = 64 * 1024;
/** The maximum number of problems in one warning. */
const MAX_NAMED = 10;

export const skills = defineHook({
  name: "skills",
  userMay: "switch",
  tools: ["load_skill"],
  options: z.strictObject({}),
  activeByDefault: (agent) => agent.skills !== undefined && agent.backend !== undefined,
  create(_, { agent, backend }) {
    const config = agent.skills;
    if (!backend || !config) return { name: "skills" };
    let blocks: readonly SystemBlock[] = [];
    /** Undefined until discovery. */
    let loadable: readonly Skill[] | undefined;

    return {
      name: "skills",

      tools: () => [loadSkill(() => loadable ?? [], backend)],

      hides: ({ name }) => name === "load_skill" && loadable?.length === 0,

      async *beforeAgent(run) {
        const { skills, faults } = await discover(backend, config, run.signal);
        if (faults.length > 0) yield warning("skills_skipped", told(faults));
        const { inline, listed } = divided(skills);
        loadable = listed;
        blocks = [...inlineBlock(inline), ...catalogue(listed, run.tools.has("load_skill"))];
      },

      modifyRequest: (request) => ({ ...request, system: [...request.system, ...blocks] }),
    };
  },
});

function told(faults: readonly string[]): string {
  const more = faults.length > MAX_NAMED ? [`and ${faults.length - MAX_NAMED} more.`] : [];
  return ["Skipped skills:", ...faults.slice(0, MAX_NAMED), ...more].join(" ");
}

type Inline = Skill & { readonly content: string };

function divided(skills: readonly Skill[]): { inline: Inline[]; listed: Skill[] } {
  const inline: Inline[] = [];
  const listed: Skill[] = [];
  let room = MAX_INLINE_CHARS;
  for (const skill of skills) {
    const { content } = skill;
    if (content !== undefined && content.length <= room) {
      room -= content.length;
      inline.push({ ...skill, content });
    } else listed.push(skill);
  }
  return { inline, listed };
}

function inlineBlock(skills: readonly Inline[]): SystemBlock[] {
  if (skills.length === 0) return [];
  const texts = skills.map(({ name, content }) => `# ${name}\n\n${content}`);
  return [{ id: "skills", text: xmlTag("skills", texts.join("\n\n---\n\n")), cache: "semi" }];
}

function catalogue(skills: readonly Skill[], canLoad: boolean): SystemBlock[] {
  if (skills.length === 0) return [];
  const lines = skills.map(({ name, description, path }) => {
    const what = description ? ` ${description}` : "";
    return `[${name}]${what} → Read ${path} for full instructions`;
  });
  const text = [introduction(canLoad), xmlTag("available_skills", lines.join("\n"))].join("\n\n");
  return [{ id: "available_skills", text, cache: "semi" }];
}

const introduction = (canLoad: boolean) =>
  `Skills are instructions for one kind of task. Before you begin a task that one of these skills covers, ${canLoad ? "load it with load_skill, or read its file" : "read its file"}.`;

const MAX_BYTES = 64 * 1024;

export function loadSkill(skills: () => readonly Skill[], backend: Backend): Tool {
  return defineTool({
    name: "load_skill",
    description: "Returns the full instructions of a skill and the folder that contains its files.",
    parameters: z.strictObject({
      name: z.string().describe("Name of the skill, as listed among the available skills."),
    }),
    annotations: { readOnly: true, category: "read", requiresPermission: false },
    async execute({ name }, _, { signal }) {
      const paths = new Map(skills().map(({ name, path }) => [name, path]));
      const path = paths.get(name);
      if (path === undefined)
        return failed(`There is no skill \`${name}\`${didYouMean(name, paths.keys()) || "."}`);
      const file = await fileText(backend, path, MAX_BYTES, signal);
      if (!file) return failed(`The skill \`${name}\` no longer exists: there is no file \`${path}\`.`);
      const folder = posix.relative(backend.workdir, posix.dirname(path)) || ".";
      const rest = file.truncated ? `\n\n[Cut after ${MAX_BYTES / 1024} KiB: read \`${path}\`.]` : "";
      return `# ${name}\n\nFolder: ${folder}\n\n${instructionsIn(file.text)}${rest}`;
    },
  });
}
