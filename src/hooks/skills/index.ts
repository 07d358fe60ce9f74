// Skills: folders with a SKILL.md that tells how to do one kind of task. Those with a description are named
// in the system prompt and read when they are needed; those without are part of it.

import { z } from "zod";
import { warning } from "../../core/event.ts";
import { defineHook } from "../../core/hook.ts";
import type { SystemBlock } from "../../core/model.ts";
import { tagged } from "../tagged.ts";
import { discover } from "./discover.ts";
import type { Skill } from "./parse.ts";

/** Of all inline skills together; one that does not fit is named like the others. */
const MAX_INLINE_CHARS = 64 * 1024;
/** A warning names this many. */
const MAX_NAMED = 10;

export const skills = defineHook({
  name: "skills",
  options: z.strictObject({}),
  activeByDefault: (agent) => agent.skills !== undefined && agent.backend !== undefined,
  create(_, { agent, backend }) {
    const config = agent.skills;
    if (!backend || !config) return { name: "skills" };
    let block: SystemBlock | undefined;

    return {
      name: "skills",

      async *beforeAgent(run) {
        const { skills, faults } = await discover(backend, config, run.signal);
        if (faults.length > 0) yield warning("skills_skipped", told(faults));
        if (skills.length > 0) block = { id: "skills", text: catalogue(skills), cache: "semi" };
      },

      modifyRequest(request) {
        return block ? { ...request, system: [...request.system, block] } : request;
      },
    };
  },
});

function told(faults: readonly string[]): string {
  const more = faults.length > MAX_NAMED ? [`and ${faults.length - MAX_NAMED} more.`] : [];
  return ["Skills passed over:", ...faults.slice(0, MAX_NAMED), ...more].join(" ");
}

function catalogue(skills: readonly Skill[]): string {
  const inline: string[] = [];
  const listed: string[] = [];
  let room = MAX_INLINE_CHARS;
  for (const skill of skills) {
    const { name, description, path, content } = skill;
    if (content !== undefined && content.length <= room) {
      room -= content.length;
      inline.push(`# ${name}\n\n${content}`);
      continue;
    }
    const what = description ? ` ${description}` : "";
    listed.push(`[${name}]${what} → Read ${path} for full instructions`);
  }
  const parts: string[] = [];
  if (inline.length > 0) parts.push(tagged("skills", inline.join("\n\n---\n\n")));
  if (listed.length > 0)
    parts.push(
      "Skills are instructions for one kind of task. Before you begin a task that one of these is for, read its file.",
      tagged("available_skills", listed.join("\n")),
    );
  return parts.join("\n\n");
}
