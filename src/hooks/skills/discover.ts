// Finds the skills of an agent in its backend.

import type { AgentDefinition } from "../../core/agent.ts";
import type { Backend } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import { globMatcher } from "../../lib/glob.ts";
import { pace } from "../../lib/pace.ts";
import { type FileText, fileText } from "../file-text.ts";
import { parseSkill, type Skill } from "./parse.ts";

type Config = NonNullable<AgentDefinition["skills"]>;

export interface Discovery {
  /** In the order of the configured paths, then by file. No two have the same name: the first one stays. */
  readonly skills: readonly Skill[];
  /** One sentence for each skill or folder that was passed over and should not have been. */
  readonly faults: readonly string[];
}

const MAX_SKILLS = 200;
const MAX_BYTES = 64 * 1024;
const READS_AT_ONCE = 8;
/** Headers are what users and models write: many hard ones together must not hold up the server. */
const MAX_MS = 5000;

/**
 * A folder that does not exist holds none. Throws when `signal` aborts, and `config_invalid` for a pattern
 * that is none.
 */
export async function discover(backend: Backend, config: Config, signal: AbortSignal): Promise<Discovery> {
  const isWanted = selection(config);
  const { files, faults } = await findFiles(backend, config.paths, signal);
  const skills = new Map<string, Skill>();
  const clock = pace(signal, MAX_MS);
  for (let at = 0; at < files.length; at += READS_AT_ONCE) {
    const batch = files.slice(at, at + READS_AT_ONCE).map((path) => read(backend, path, signal));
    for (const file of await Promise.all(batch)) {
      const skill = "fault" in file ? file : parseSkill(file);
      if ("fault" in skill) faults.push(`\`${file.path}\` ${skill.fault}.`);
      else if (isWanted(skill.name) && !skills.has(skill.name)) skills.set(skill.name, skill);
      if (clock.isDue() && !(await clock.rest())) {
        faults.push("Reading all of them takes too long.");
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
      // A name may hold anything; in a prompt it must stay the path that it is.
      for (const match of matches) if (!/\p{Cc}/u.test(match)) files.add(match);
      if (truncated) faults.push(`\`${path}\` holds too many files to look at all of them.`);
    } catch (error) {
      signal.throwIfAborted();
      if (!isMissing(error))
        faults.push(`\`${path}\` could not be searched: ${AppError.from(error).message}`);
    }
  }
  if (files.size > MAX_SKILLS) faults.push(`Only ${MAX_SKILLS} of ${files.size} skills are used.`);
  return { files: [...files].slice(0, MAX_SKILLS), faults };
}

type Read = ({ path: string } & FileText) | { path: string; fault: string };

async function read(backend: Backend, path: string, signal: AbortSignal): Promise<Read> {
  try {
    const file = await fileText(backend, path, MAX_BYTES, signal);
    return file ? { path, ...file } : { path, fault: "is gone" };
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
