// The configured part of the system prompt. It never changes during a run and comes before the blocks of hooks, so providers
// can cache it. The blocks keep their order and exact text.

import { dirname, join } from "node:path";
import { type Fault, SELDOM } from "../../lib/check.ts";
import { xmlTag } from "../../lib/text.ts";
import { AgentFields } from "../core/agent.ts";
import type { SystemBlock } from "../core/model.ts";
import type { RawAgent } from "./raw-agent.ts";
import { textBeside } from "./text-beside.ts";

/** The maximum number of characters in all texts under `context` together. */
const MAX_CONTEXT_CHARS = 256 * 1024;

export interface Prompt {
  readonly blocks: readonly SystemBlock[];
  /** The faults. The path of each fault begins with the name of the field. */
  readonly faults: readonly Fault[];
}

type Fields = Readonly<Record<string, unknown>>;
const { system_prompt, identity, description, context, behavioral_hints } = AgentFields.shape;

/**
 * Creates the blocks from an agent's fields in `configFile`. Skips invalid values, which the schema reports.
 */
export async function readPrompt(
  { name, fields }: Pick<RawAgent, "name" | "fields">,
  configFile: string,
): Promise<Prompt> {
  const parts = [
    identityOf(name, fields),
    await instructions(fields.system_prompt, configFile),
    behavioral_hints.safeParse(fields.behavioral_hints).data ? HINTS : NOTHING,
    await projectContext(fields.context, configFile),
  ];
  return { blocks: parts.flatMap(({ blocks }) => blocks), faults: parts.flatMap(({ faults }) => faults) };
}

/** Returns the paths of all files that a prompt names. */
export function promptFiles(fields: Fields, configFile: string): string[] {
  const texts = [
    system_prompt.safeParse(fields.system_prompt, SELDOM).data,
    ...(context.safeParse(fields.context, SELDOM).data ?? []),
  ];
  return texts.flatMap((each) =>
    typeof each === "object" && "file" in each ? [join(dirname(configFile), each.file)] : [],
  );
}

const staticBlock = (id: string, text: string): SystemBlock => ({ id, text, cache: "static" });
const oneBlock = (id: string, text: string): Prompt => ({ blocks: [staticBlock(id, text)], faults: [] });
const refused = (...faults: Fault[]): Prompt => ({ blocks: [], faults });

const NOTHING = refused();
const HINTS = oneBlock(
  "behavioral_constraints",
  xmlTag(
    "behavioral_constraints",
    `- Do what the user asked for, and say so if you leave something out. Suggest additional work instead of doing it.
- Read existing content before you overwrite it.
- Check your work before you report it as done. Never claim something that you have not verified.
- When something fails, find out why before you try again. If it fails twice, try a different approach.
- Find out yourself what you can. Ask only if the user alone can answer and a wrong guess would be costly. Otherwise, decide and state your assumptions.
- Briefly report what you found and what you did. If you disagree, say why.`,
  ),
);

function identityOf(name: string, fields: Fields): Prompt {
  const who = identity.safeParse(fields.identity).data;
  if (who === undefined) return NOTHING;
  const prompt = system_prompt.safeParse(fields.system_prompt, SELDOM).data;
  // The prompt cannot contain both blocks, because both would have to come first.
  if (Array.isArray(prompt) && prompt.some(({ id }) => id === "identity"))
    return refused({
      path: ["identity"],
      message: "is also a block of `system_prompt`, which comes first there; keep one of them",
    });
  if (who !== true) return oneBlock("identity", xmlTag("identity", who));
  const about = description.safeParse(fields.description).data?.trim();
  return oneBlock("identity", xmlTag("identity", `You are \`${name}\`.${about ? `\n${about}` : ""}`));
}

async function instructions(prompt: unknown, configFile: string): Promise<Prompt> {
  const { success, data = "" } = system_prompt.safeParse(prompt, SELDOM);
  if (!success) return NOTHING;
  if (typeof data === "string") return data.trim() ? oneBlock("instructions", data) : NOTHING;
  if (Array.isArray(data)) return ownBlocks(data);
  const read = await textBeside(configFile, data.file);
  if ("fault" in read) return refused({ path: ["system_prompt"], message: read.fault });
  return oneBlock("instructions", read.text);
}

/**
 * Returns the blocks in their original order. Blocks up to `identity` come first, and all other blocks take
 * the place of the instructions.
 */
function ownBlocks(written: readonly { id: string; text: string }[]): Prompt {
  const ids = written.map(({ id }) => id);
  const blocks = written.map(({ id, text }, index) => ({
    ...staticBlock(id, text),
    place: index <= ids.indexOf("identity") ? "identity" : "instructions",
  }));
  const twice = ids.find((id, index) => ids.indexOf(id) < index);
  if (twice === undefined) return { blocks, faults: [] };
  const message = `has two blocks with the id \`${twice}\`; give each block a unique id`;
  return { blocks, faults: [{ path: ["system_prompt"], message }] };
}

/** Combines all texts in a single block. */
async function projectContext(written: unknown, configFile: string): Promise<Prompt> {
  const given = context.safeParse(written, SELDOM).data ?? [];
  const read = await Promise.all(
    given.map(async (each) =>
      typeof each === "string" ? { text: each } : textBeside(configFile, each.file),
    ),
  );
  const faults = read.flatMap((each, at) =>
    "fault" in each ? [{ path: ["context", at], message: each.fault }] : [],
  );
  if (faults.length > 0 || given.length === 0) return refused(...faults);
  const text = read.map((each) => ("text" in each ? each.text.trim() : "")).join("\n\n---\n\n");
  if (text.length > MAX_CONTEXT_CHARS)
    return refused({
      path: ["context"],
      message: `must contain at most ${MAX_CONTEXT_CHARS} characters in total; it contains ${text.length}`,
    });
  return oneBlock("project_context", xmlTag("project_context", text));
}
