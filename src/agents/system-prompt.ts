// The part of the system prompt that an agent's configuration gives: it never changes during a run and stands
// before whatever hooks add, so that a provider can keep it. Blocks keep their order and their exact text.

import { realpath } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { AgentFields } from "../core/agent.ts";
import type { SystemBlock } from "../core/model.ts";
import { readText } from "../lib/read-text.ts";

const MAX_FILE_BYTES = 256 * 1024;

export interface Prompt {
  readonly blocks: readonly SystemBlock[];
  /** A clause that says what is wrong. */
  readonly fault?: string;
}

/**
 * What stands under `system_prompt` in `configFile`. What does not have a known form gives no block: the schema
 * speaks of that.
 */
export async function readPrompt(prompt: unknown, configFile: string): Promise<Prompt> {
  const { success, data = "" } = AgentFields.shape.system_prompt.safeParse(prompt);
  if (!success) return { blocks: [] };
  if (typeof data === "string") return oneBlock(data);
  return Array.isArray(data) ? ownBlocks(data) : readBeside(configFile, data.file);
}

const staticBlock = (id: string, text: string): SystemBlock => ({ id, text, cache: "static" });

const oneBlock = (text: string): Prompt => ({
  blocks: text.trim() ? [staticBlock("instructions", text)] : [],
});

function ownBlocks(written: readonly { id: string; text: string }[]): Prompt {
  const blocks = written.map(({ id, text }) => staticBlock(id, text));
  const ids = written.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) < index);
  if (twice === undefined) return { blocks };
  return { blocks, fault: `has two blocks \`${twice}\`; give each an id of its own` };
}

/** A file in the configuration's own folder or below, links included. */
async function readBeside(configFile: string, file: string): Promise<Prompt> {
  const root = await realpath(dirname(configFile));
  const path = join(root, file);
  const target = await realpath(path).catch(() => path);
  const way = relative(root, target);
  const isOutside = isAbsolute(file) || isAbsolute(way) || way.split(sep)[0] === "..";
  if (isOutside) return refused(`must lie below the folder of this file: \`${file}\` does not`);
  const read = await readText(target, MAX_FILE_BYTES);
  if ("fault" in read) return refused(`must name a text file: \`${file}\` ${read.fault}`);
  return read.text.trim() ? oneBlock(read.text) : refused(`must name a text file: \`${file}\` is empty`);
}

const refused = (fault: string): Prompt => ({ blocks: [], fault });
