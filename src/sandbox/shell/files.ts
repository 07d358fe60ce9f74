// File operations in a workspace through any POSIX shell and its usual tools, inside the sandbox.
//
// A script enters a path's folder first, so the folder's real location is known and cannot change. Files are read
// and written through staging in the workspace itself and moved to their place in one step.

import type { Backend, SearchMatches } from "../../agent/core/backend.ts";
import { AppError } from "../../agent/core/errors.ts";
import { assertRemovable, quoted } from "../paths.ts";
import type { FileTree } from "../search.ts";
import {
  entriesIn,
  perform,
  RESERVED,
  relativePath,
  type ScriptTarget,
  STAGING_ROOT,
  stagingName,
  succeeded,
  wordsOf,
} from "./prelude.ts";
import { contentsOf, readFile } from "./read.ts";
import { quote, SandboxLostError, type ScriptRunner } from "./script.ts";
import { writeFile } from "./write.ts";

/** The maximum number of entries in a listing, in disk order. */
const MAX_LISTED = 10_000;
const MAX_LISTED_BYTES = 4 * 1024 * 1024;
/** The number of names, of any length, that fit on one command line. */
const MAX_NAMES = 500;
const GRACE_SECONDS = 60;

export type Files = FileTree & Pick<Backend, "stat" | "read" | "write" | "list" | "remove">;

/** Creates the file operations. The runner's shells must have the functions of `PRELUDE`. */
export function shellFiles(runner: ScriptRunner, workdir: string): Files {
  const at = (path: string): ScriptTarget => ({
    runner,
    workdir,
    path,
    relative: relativePath(path, workdir),
  });

  return {
    workdir,

    async stat(path, signal) {
      const target = at(path);
      const script = `fs_find ${wordsOf(target)} && { fs_tell "./$n" || r=ENOENT; }`;
      const [found] = entriesIn(await perform(target, { script }, signal), workdir);
      if (found) return found;
      throw new AppError("backend_failed", `Cannot read the attributes of ${quoted(path)}.`);
    },

    async *read(path, range, signal) {
      yield* readFile(at(path), range, signal);
    },

    async write(path, data, signal) {
      return writeFile(at(path), data, signal);
    },

    async list(path, signal) {
      const target = at(path);
      const reply = await perform(target, { script: listing(target), maxBytes: MAX_LISTED_BYTES }, signal);
      return entriesIn(reply, workdir)
        .filter(({ path, type }) => path !== `${workdir}/${STAGING_ROOT}` || type !== "directory")
        .toSorted((one, other) => (one.path < other.path ? -1 : 1))
        .slice(0, MAX_LISTED);
    },

    async remove(path, signal) {
      await removeEntry(at(path), signal);
    },

    async files(folder, skipped, signal) {
      return walk(at(folder || "."), skipped, signal);
    },

    contents: (paths, maxBytes, signal) => contentsOf(at("."), paths, maxBytes, signal),
  };
}

const listing = (target: ScriptTarget) => `fs_folder ${wordsOf(target)} && {
  set -- * .[!.]* ..?*
  if [ $# -le ${MAX_NAMES} ]; then fs_tell "$@"
  else
    fs_tell
    find . -mindepth 1 -maxdepth 1 -exec stat -c "$N:%f %s %Y %n/" {} + | head -n ${MAX_LISTED}
  fi
  [ $? -lt 126 ] || r=EIO
}`;

/**
 * Starts erasing files that lost operations left in staging. Call it only for a sandbox that has just started. Skips
 * files younger than a minute, which may belong to a running operation.
 */
export async function clearStaging(
  runner: Pick<ScriptRunner, "runOnce">,
  workdir: string,
  signal: AbortSignal,
): Promise<void> {
  const before = Math.floor(Date.now() / 1000) - GRACE_SECONDS;
  const script = `fs_root ${quote(workdir)} && { fs_clear ${before} >/dev/null & }`;
  await runner.runOnce({ script }, signal);
}

/** The maximum number of entries that a search visits. */
const MAX_WALKED = 50_000;
const MAX_WALKED_BYTES = 8 * 1024 * 1024;
/**
 * The maximum number of printed entries. Each entry can appear twice. One entry beyond the limit and one incomplete
 * entry may follow.
 */
const MAX_PRINTED = 2 * MAX_WALKED + 4;

/** Finds the files below a folder, relative to the workspace. Does not follow links or enter folders named in `skipped`. */
async function walk(
  target: ScriptTarget,
  skipped: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<SearchMatches<string>> {
  // An entry that is not a file is printed twice. It counts towards the limit but is not a result. The mark proves that
  // the output is complete.
  const script = `fs_folder ${wordsOf(target)} && {
    find . ${pruned(target.relative, skipped)} \\( -type f -o -print0 \\) -print0
    [ $? -lt 126 ] && printf %s "$N"
  } | head -c ${MAX_WALKED_BYTES}`;
  const { output, mark } = await perform(target, { script, maxBytes: MAX_WALKED_BYTES }, signal);
  // Names may not be UTF-8, and two invalid names must stay different.
  const text = output.toString("latin1");
  const isWhole = text.endsWith(mark);
  const entries = text.split("\0", MAX_PRINTED).slice(0, isWhole ? -1 : -2);

  const matches: string[] = [];
  let walked = 0;
  for (let at = 0; at < entries.length; at++) {
    if (++walked > MAX_WALKED) return { matches, truncated: true };
    const entry = entries[at] ?? "";
    if (entry === entries[at + 1]) at++;
    else matches.push(pathOf(entry, target.relative));
  }
  return { matches, truncated: !isWhole };
}

/** Returns the `find` conditions for folders to skip. */
function pruned(folder: string, skipped: ReadonlySet<string>): string {
  const names = [...skipped].map((name) => `-name ${quote(name.replace(/[\\*?[\]]/g, "\\$&"))}`);
  const paths = RESERVED.map((path) => (folder === "" ? `./${path}` : path.replace(`${folder}/`, "./"))).map(
    (path) => `-path ${quote(path)}`,
  );
  return `-type d \\( ${[...paths, ...names].join(" -o ")} \\) -prune -o`;
}

function pathOf(entry: string, folder: string): string {
  const name = Buffer.from(entry, "latin1").toString().slice(2);
  return folder === "" ? name : `${folder}/${name}`;
}

/**
 * Removes an entry at once. Moves a folder to staging first and then erases it. `clearStaging` erases anything that
 * is left.
 */
async function removeEntry(target: ScriptTarget, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  assertRemovable(target.relative);
  const name = stagingName();
  if (!(await take(target, name, signal))) return;
  const script = `fs_root ${quote(target.workdir)} && fs_erase ${name}`;
  await target.runner.runOnce({ script }, signal).catch(() => {});
}

/** Returns true if staging may contain something to erase. */
async function take(target: ScriptTarget, name: string, signal: AbortSignal): Promise<boolean> {
  const script = { script: `fs_remove ${wordsOf(target)} ${name}` };
  try {
    const { fields } = succeeded(await target.runner.runOnce(script, signal), target.path);
    return fields[1] === "moved";
  } catch (error) {
    if (!(error instanceof SandboxLostError)) throw error;
  }
  const reply = await target.runner.run(script, signal);
  // If the entry is missing, it was removed before the loss.
  if (reply.fields[0] !== "ENOENT") succeeded(reply, target.path);
  return true;
}
