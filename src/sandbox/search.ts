// Finds files and lines in a backend's list of files and their contents. Both searches limit their work and results and
// yield to other work. `truncated` means that more matches may exist.

import type { Backend, GrepMatch, SearchMatches } from "../agent/core/backend.ts";
import { AppError } from "../agent/core/errors.ts";
import { globMatcher } from "../lib/glob.ts";
import { type SafeRegex, safeRegex } from "../lib/regex.ts";
import { firstChars, lastChars } from "../lib/text.ts";
import { type TimeSlices, timeSlices } from "../lib/ticks.ts";
import { utf16Of } from "../lib/utf16.ts";
import { toRelative } from "./paths.ts";

const MAX_PATHS = 100;
const MAX_MATCHES = 200;
const MAX_LINE_CHARS = 500;
/** The number of characters of a long line to show before the match. */
const CHARS_BEFORE = 100;
const MAX_FILE_BYTES = 10 * 1024 * 1024;
/** The number of bytes to check for a NUL byte. A file with a NUL byte among its first bytes is not text. */
const BINARY_PROBE_BYTES = 8192;
const MAX_SEARCH_MS = 10_000;
const SKIPPED_FOLDERS = [".git", ".skein", "node_modules", "__pycache__", ".venv"];

/**
 * The operations that a backend must provide. Paths are relative to the workspace, but a search returns absolute
 * paths.
 */
export interface FileTree extends Pick<Backend, "workdir" | "stat"> {
  /** Lists the regular files below a folder. Does not follow links or enter folders named in `skipped`. */
  files(folder: string, skipped: ReadonlySet<string>, signal: AbortSignal): Promise<SearchMatches<string>>;
  /** Yields the contents of files. Omits files that are larger than `maxBytes`, missing or unreadable. */
  contents(
    paths: readonly string[],
    maxBytes: number,
    signal: AbortSignal,
  ): AsyncIterable<{ path: string; bytes: Uint8Array }>;
}

export function searching(tree: FileTree): Pick<Backend, "glob" | "grep"> {
  return {
    async glob(pattern, path, signal) {
      const matches = matcher(fromWorkspace(pattern, tree.workdir));
      const start = isAbsolute(pattern) ? tree.workdir : path;
      const found = await filesBelow(tree, start, pattern, matches, signal);
      const sorted = found.matches.toSorted();
      return {
        matches: sorted.slice(0, MAX_PATHS).map((file) => `${tree.workdir}/${file}`),
        truncated: found.truncated || sorted.length > MAX_PATHS,
      };
    },

    async grep(pattern, path, include, signal) {
      const regex = refusing(pattern, "expression", () => safeRegex(pattern));
      const matches = include === undefined ? () => true : matcher(fromWorkspace(include, tree.workdir));
      const files = await filesBelow(tree, path, include ?? "", matches, signal);
      const found = await searchLines(tree, files.matches.toSorted(), regex, signal);
      return { ...found, truncated: found.truncated || files.truncated };
    },
  };
}

/**
 * Returns the pattern relative to the workspace. A pattern may be absolute, like a path, and then applies to
 * the whole workspace.
 */
function fromWorkspace(pattern: string, workdir: string): string {
  return isAbsolute(pattern) ? `./${toRelative(pattern, [workdir])}` : pattern;
}
const isAbsolute = (pattern: string) => pattern.startsWith("/");

const matcher = (pattern: string) => refusing(pattern, "pattern", () => globMatcher(pattern));

function refusing<T>(text: string, what: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new AppError("invalid_request", `The ${what} \`${firstChars(text, 200)}\` ${error.message}.`);
  }
}

async function filesBelow(
  tree: FileTree,
  path: string,
  pattern: string,
  matches: (path: string) => boolean,
  signal: AbortSignal,
): Promise<SearchMatches<string>> {
  const start = await tree.stat(path, signal);
  const base = toRelative(start.path, [tree.workdir]);
  if (start.type === "file")
    return { matches: matches(base.slice(base.lastIndexOf("/") + 1)) ? [base] : [], truncated: false };

  const named = new Set(pattern.split("/"));
  const skipped = new Set(SKIPPED_FOLDERS.filter((name) => !named.has(name)));
  const found = await tree.files(base, skipped, signal);
  const clock = timeSlices(signal, MAX_SEARCH_MS);
  const kept: string[] = [];
  for (const file of found.matches) {
    if (clock.isDue() && !(await clock.rest())) return { matches: kept, truncated: true };
    if (matches(base === "" ? file : file.slice(base.length + 1))) kept.push(file);
  }
  return { matches: kept, truncated: found.truncated };
}

interface Search {
  readonly regex: SafeRegex;
  readonly clock: TimeSlices;
  readonly matches: GrepMatch[];
  /** True if more matches may exist than `matches` contains. */
  truncated: boolean;
}

async function searchLines(
  tree: FileTree,
  files: readonly string[],
  regex: SafeRegex,
  signal: AbortSignal,
): Promise<SearchMatches<GrepMatch>> {
  const search: Search = { regex, clock: timeSlices(signal, MAX_SEARCH_MS), matches: [], truncated: false };
  let searched = 0;
  let isOver = false;
  for await (const { path, bytes } of tree.contents(files, MAX_FILE_BYTES, signal)) {
    const text = textOf(bytes);
    if (text === undefined) continue;
    searched++;
    isOver = !(await searchFile(`${tree.workdir}/${path}`, text, search));
    if (isOver) break;
  }
  const skipped = isOver ? 0 : files.length - searched;
  return {
    matches: search.matches,
    truncated: search.truncated,
    ...(skipped > 0 ? { skipped } : {}),
  };
}

/** Decodes a file. Returns undefined if it is not text. */
function textOf(bytes: Uint8Array): string | undefined {
  const order = utf16Of(bytes);
  if (order) return new TextDecoder(order).decode(bytes);
  return bytes.subarray(0, BINARY_PROBE_BYTES).includes(0) ? undefined : new TextDecoder().decode(bytes);
}

/**
 * Adds a file's matches. Returns false if the search must end because it has too many matches or is out of
 * time.
 */
async function searchFile(file: string, text: string, search: Search): Promise<boolean> {
  const { regex, clock, matches } = search;
  let number = 0;
  for (let start = 0; start < text.length; ) {
    if (clock.isDue() && !(await clock.rest())) return over(search);
    const end = text.indexOf("\n", start);
    const line = withoutReturn(text.slice(start, end === -1 ? text.length : end));
    start = end === -1 ? text.length : end + 1;
    number++;
    if (line.length > regex.reach) search.truncated = true;
    if (!regex.test(line)) continue;
    if (matches.length === MAX_MATCHES) return over(search);
    matches.push({ file, line: number, text: aroundMatch(line, regex) });
  }
  return true;
}

function over(search: Search): false {
  search.truncated = true;
  return false;
}

const withoutReturn = (line: string) => (line.endsWith("\r") ? line.slice(0, -1) : line);

function aroundMatch(line: string, regex: SafeRegex): string {
  if (line.length <= MAX_LINE_CHARS) return line;
  const start = regex.find(line)?.start ?? 0;
  const from = line.length - lastChars(line, line.length - Math.max(0, start - CHARS_BEFORE)).length;
  const shown = firstChars(line.slice(from), MAX_LINE_CHARS);
  return `${from > 0 ? "…" : ""}${shown}${from + shown.length < line.length ? "…" : ""}`;
}
