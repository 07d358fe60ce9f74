// One SKILL.md: YAML between two lines of `---`, then the instructions.

import { posix } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { firstChars } from "../../lib/cut.ts";
import type { FileText } from "../file-text.ts";

export interface Skill {
  readonly name: string;
  /** Where its SKILL.md is, absolute. */
  readonly path: string;
  readonly description?: string;
  /** The instructions: there when the skill has no description and was read whole. */
  readonly content?: string;
}

const MAX_NAME = 100;
const MAX_DESCRIPTION = 1024;
/** YAML takes time to parse: a header is no place for more than a name, a description and a few notes. */
const MAX_HEADER = 4096;

const Header = z.object({
  name: z.string().nullish(),
  description: z.string().nullish(),
});

interface SkillFile extends FileText {
  readonly path: string;
}

/** The skill, called like its folder if it has no name; or what is wrong with it, to complete "The file …". */
export function parseSkill({ path, text, truncated }: SkillFile): Skill | { fault: string } {
  const parts = split(text);
  if ("fault" in parts) return parts;
  const header = readHeader(parts.header);
  if ("fault" in header) return header;

  const name = oneLine(header.name ?? "", MAX_NAME) || oneLine(posix.basename(posix.dirname(path)), MAX_NAME);
  const description = oneLine(header.description ?? "", MAX_DESCRIPTION);
  if (description) return { name, path, description };
  if (truncated) return { name, path };
  const content = parts.body.trim();
  return content ? { name, path, content } : { fault: "is empty" };
}

/** All but the header; the whole text where the header is broken. */
export function instructionsIn(text: string): string {
  const parts = split(text);
  return ("fault" in parts ? text : parts.body).trim();
}

function split(text: string): { header: string; body: string } | { fault: string } {
  if (!/^---[ \t]*\n/.test(text)) return { header: "", body: text };
  const lines = text.split("\n");
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---");
  if (end === -1) return { fault: "has a header that no line `---` closes" };
  return { header: lines.slice(1, end).join("\n"), body: lines.slice(end + 1).join("\n") };
}

function readHeader(yaml: string): z.output<typeof Header> | { fault: string } {
  if (yaml.length > MAX_HEADER) return { fault: `has a header of more than ${MAX_HEADER} characters` };
  try {
    const header = Header.safeParse(parse(yaml, { logLevel: "error", prettyErrors: false }) ?? {});
    return header.success ? header.data : { fault: "has a header whose `name` or `description` is no text" };
  } catch {
    return { fault: "has a header that is not valid YAML" };
  }
}

const oneLine = (text: string, limit: number) =>
  firstChars(text.replaceAll(/[\s\p{Cc}]+/gu, " ").trim(), limit);
