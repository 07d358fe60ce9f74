// Files of a workspace, by what any POSIX shell and its usual tools can do.
//
// Everything happens inside the sandbox. A path is pinned down by going to its folder, so it is known where that
// really is. Files on their way in or out are kept in the workspace itself, to be moved to their place in one step.

import type { Backend, Found } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import { isInside } from "../../lib/paths.ts";
import { quoted, toRelative } from "../paths.ts";
import type { Tree } from "../search.ts";
import { entriesIn, perform, STAGING, stagingName, succeeded, type Target, wordsOf } from "./prelude.ts";
import { contentsOf, readFile } from "./read.ts";
import { quote, SandboxLostError, type ScriptRunner } from "./script.ts";
import { writeFile } from "./write.ts";

/** A folder is listed up to here, in the order of the disk. */
const MAX_LISTED = 10_000;
const MAX_LISTED_BYTES = 4 * 1024 * 1024;
/** So many names fit on one command line, whatever they are. */
const MAX_NAMES = 500;
const GRACE_SECONDS = 60;

export type Files = Tree & Pick<Backend, "stat" | "read" | "write" | "list" | "remove">;

/** The runner's shells know the functions of `PRELUDE`. */
export function shellFiles(runner: ScriptRunner, workdir: string): Files {
  const at = (path: string): Target => {
    const relative = toRelative(path, [workdir]);
    if (!isInside(STAGING, relative)) return { runner, workdir, path, relative };
    throw new AppError(
      "backend_refused",
      `${quoted(path)} is where files are kept while they are written. Use another path.`,
    );
  };

  return {
    workdir,

    async stat(path, signal) {
      const target = at(path);
      const script = `fs_find ${wordsOf(target)} && { fs_tell "./$n" || r=ENOENT; }`;
      const [found] = entriesIn(await perform(target, { script }, signal), workdir);
      if (found) return found;
      throw new AppError("backend_failed", `Nothing can be told of ${quoted(path)}.`);
    },

    async *read(path, range, signal) {
      yield* readFile(at(path), range, signal);
    },

    async write(path, data, signal) {
      return writeFile(at(path), data, signal);
    },

    async list(path, signal) {
      const target = at(path);
      const fragment = { script: listing(target), maxBytes: MAX_LISTED_BYTES };
      const reply = await perform(target, fragment, signal);
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

const STAGING_ROOT = STAGING.slice(0, STAGING.indexOf("/"));

const listing = (target: Target) => `fs_folder ${wordsOf(target)} && {
  set -- * .[!.]* ..?*
  if [ $# -le ${MAX_NAMES} ]; then fs_tell "$@"
  else
    fs_tell
    find . -mindepth 1 -maxdepth 1 -exec stat -c "$N:%f %s %Y %n/" {} + | head -n ${MAX_LISTED}
  fi
  [ $? -lt 126 ] || r=EIO
}`;

/**
 * Begins to erase what operations that were lost have left behind. To be called when the sandbox was started: what
 * is younger than a minute may belong to an operation that goes on.
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

// Finding the files below a folder: one `find`, bounded in what it prints.
/** Entries that are looked at. */
const MAX_WALKED = 50_000;
const MAX_WALKED_BYTES = 8 * 1024 * 1024;
/** Each twice, one too many, and what is cut off at the end. */
const MAX_PRINTED = 2 * MAX_WALKED + 4;

/** Paths relative to the workspace. Links are not followed, folders named in `skipped` not entered. */
export async function walk(
  target: Target,
  skipped: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Found<string>> {
  // What is no file is printed twice: it counts, but is not found. The mark tells that nothing is missing.
  const script = `fs_folder ${wordsOf(target)} && {
    find . ${pruned(target.relative, skipped)} \\( -type f -o -print0 \\) -print0
    [ $? -lt 126 ] && printf %s "$N"
  } | head -c ${MAX_WALKED_BYTES}`;
  const { output, mark } = await perform(target, { script, maxBytes: MAX_WALKED_BYTES }, signal);
  // Names need not be UTF-8, and two that are not must not look the same.
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

/** The conditions of `find` for what is not entered. */
function pruned(folder: string, skipped: ReadonlySet<string>): string {
  const names = [...skipped].map((name) => `-name ${quote(name.replace(/[\\*?[\]]/g, "\\$&"))}`);
  const staging = folder === "" ? `./${STAGING}` : STAGING.replace(`${folder}/`, "./");
  return `-type d \\( ${[`-path ${quote(staging)}`, ...names].join(" -o ")} \\) -prune -o`;
}

function pathOf(entry: string, folder: string): string {
  const name = Buffer.from(entry, "latin1").toString().slice(2);
  return folder === "" ? name : `${folder}/${name}`;
}

// Removing: what is removed is gone at once, erasing it may take its time.

/** A folder with all that is in it. What cannot be erased now is left to `clearStaging`. */
export async function removeEntry(target: Target, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (target.relative === "")
    throw new AppError("backend_refused", "The workspace itself cannot be removed, only what is in it.");
  const name = stagingName();
  if (!(await take(target, name, signal))) return;
  const script = `fs_root ${quote(target.workdir)} && fs_erase ${name}`;
  await target.runner.runOnce({ script }, signal).catch(() => {});
}

/** True when there may be something to erase in staging. */
async function take(target: Target, name: string, signal: AbortSignal): Promise<boolean> {
  const fragment = { script: `fs_remove ${wordsOf(target)} ${name}` };
  try {
    const { fields } = succeeded(await target.runner.runOnce(fragment, signal), target.path);
    return fields[1] === "moved";
  } catch (error) {
    if (!(error instanceof SandboxLostError)) throw error;
  }
  const reply = await target.runner.run(fragment, signal);
  // What is not there any more was removed before the loss.
  if (reply.fields[0] !== "ENOENT") succeeded(reply, target.path);
  return true;
}
