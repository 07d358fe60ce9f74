// Finds an agent's skills in its backend and parses them: a YAML header between two lines of `---`, then the instructions.

import { posix } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { globMatcher } from "../../../lib/glob.ts";
import { firstChars } from "../../../lib/text.ts";
import { timeSlices } from "../../../lib/ticks.ts";
import type { AgentDefinition } from "../../core/agent.ts";
import type { Backend } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import { type FileText, fileText } from "../memory.ts";

type Config = NonNullable<AgentDefinition["skills"]>;

export interface Discovery {
  /**
   * The skills, sorted by configured path and then by file. The first of several skills with the same name is
   * used.
   */
  readonly skills: readonly Skill[];
  /** One sentence for each skill or folder that was skipped because of a problem. */
  readonly faults: readonly string[];
}

const MAX_SKILLS = 200;
const MAX_BYTES = 64 * 1024;
const READS_AT_ONCE = 8;
/**
 * The maximum time for parsing headers, in ms. Users and models write headers, and many complex ones must not
 * block the server.
 */
const MAX_MS = 5000;

/**
 * Finds the skills. Ignores missing folders. Throws when `signal` aborts, and throws `config_invalid` for an
 * invalid pattern.
 */
export async function discover(backend: Backend, config: Config, signal: AbortSignal): Promise<Discovery> {
  const isWanted = selection(config);
  const { files, faults } = await findFiles(backend, config.paths, signal);
  const skills = new Map<string, Skill>();
  const clock = timeSlices(signal, MAX_MS);
  for (let at = 0; at < files.length; at += READS_AT_ONCE) {
    const batch = files.slice(at, at + READS_AT_ONCE).map((path) => read(backend, path, signal));
    for (const file of await Promise.all(batch)) {
      const skill = "fault" in file ? file : parseSkill(file);
      if ("fault" in skill) faults.push(`\`${file.path}\` ${skill.fault}.`);
      else if (isWanted(skill.name) && !skills.has(skill.name)) skills.set(skill.name, skill);
      if (clock.isDue() && !(await clock.rest())) {
        faults.push("Some were skipped because reading all of them takes too long.");
        return { skills: [...skills.values()], faults };
      }
    }
  }
  return { skills: [...skills.values()], faults };
}

async function findFiles(backend: Backend, paths: readonly string[], signal: AbortSignal) {
  const files = new Set<string>();
  const faults: string[] = [];
  for (const path of paths) {
    try {
      const { matches, truncated } = await backend.glob("**/SKILL.md", path, signal);
      // Excludes paths with control characters, because the prompt shows the paths.
      for (const match of matches) if (!/\p{Cc}/u.test(match)) files.add(match);
      if (truncated) faults.push(`\`${path}\` contains too many files to read all of them.`);
    } catch (error) {
      signal.throwIfAborted();
      if (!isMissing(error))
        faults.push(`\`${path}\` could not be searched: ${AppError.from(error).message}`);
    }
  }
  if (files.size > MAX_SKILLS) faults.push(`Only ${MAX_SKILLS} of ${files.size} skills are used.`);
  return { files: [...files].slice(0, MAX_SKILLS), faults };
}

type FileReading = ({ path: string } & FileText) | { path: string; fault: string };

async function read(backend: Backend, path: string, signal: AbortSignal): Promise<FileReading> {
  try {
    const file = await fileText(backend, path, MAX_BYTES, signal);
    return file ? { path, ...file } : { path, fault: "no longer exists" };
  } catch (error) {
    signal.throwIfAborted();
    return { path, fault: `could not be read (${AppError.from(error).code})` };
  }
}

function selection({ include, exclude }: Config): (name: string) => boolean {
  const included = include.map(matcher);
  const excluded = exclude.map(matcher);
  return (name) =>
    (included.length === 0 || included.some((matches) => matches(name))) &&
    !excluded.some((matches) => matches(name));
}

function matcher(pattern: string): (name: string) => boolean {
  try {
    return globMatcher(pattern);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new AppError("config_invalid", `The skill pattern \`${pattern}\` ${error.message}.`);
  }
}

const isMissing = (error: unknown) => error instanceof AppError && error.code === "not_found";

export interface Skill {
  readonly name: string;
  /** The absolute path of the skill's SKILL.md. */
  readonly path: string;
  readonly description?: string;
  /** The complete instructions of a skill without a description. */
  readonly content?: string;
}

const MAX_NAME = 100;
const MAX_DESCRIPTION = 1024;
/** The maximum number of characters in a header, to limit the time for parsing YAML. */
const MAX_HEADER = 4096;

const Header = z.object({
  name: z.string().nullish(),
  description: z.string().nullish(),
});

interface SkillFile extends FileText {
  readonly path: string;
}

/** Parses a skill. By default, the skill is named after its folder. `fault` completes "The file …". */
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

/** Returns everything after the header, or the whole text if the header is invalid. */
export function instructionsIn(text: string): string {
  const parts = split(text);
  return ("fault" in parts ? text : parts.body).trim();
}

function split(text: string): { header: string; body: string } | { fault: string } {
  if (!/^---[ \t]*\n/.test(text)) return { header: "", body: text };
  const lines = text.split("\n");
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---");
  if (end === -1) return { fault: "has a header without a closing line `---`" };
  return { header: lines.slice(1, end).join("\n"), body: lines.slice(end + 1).join("\n") };
}

function readHeader(yaml: string): z.output<typeof Header> | { fault: string } {
  if (yaml.length > MAX_HEADER) return { fault: `has a header of more than ${MAX_HEADER} characters` };
  try {
    const header = Header.safeParse(parse(yaml, { logLevel: "error", prettyErrors: false }) ?? {});
    return header.success ? header.data : { fault: "has a header whose `name` or `description` is not text" };
  } catch {
    return { fault: "has a header that is not valid YAML" };
  }
}

const oneLine = (text: string, limit: number) =>
  firstChars(text.replaceAll(/[\s\p{Cc}]+/gu, " ").trim(), limit);
