// Files of a workspace, by what any POSIX shell and its usual tools can do.
//
// Everything happens inside the sandbox. A path is pinned down by going to its folder, so it is known where that
// really is. Files on their way in or out are kept in the workspace itself, to be moved to their place in one step.

import type { Backend } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import { isInside } from "../../lib/inside.ts";
import { quoted, toRelative } from "../paths.ts";
import type { Tree } from "../search.ts";
import { contentsOf } from "./contents.ts";
import { entriesIn } from "./entries.ts";
import { STAGING } from "./prelude.ts";
import { readFile } from "./read.ts";
import { removeEntry } from "./remove.ts";
import { quote, type Runner } from "./runner.ts";
import { perform, type Target, wordsOf } from "./target.ts";
import { walk } from "./walk.ts";
import { writeFile } from "./write.ts";

/** A folder is listed up to here, in the order of the disk. */
const MAX_LISTED = 10_000;
const MAX_LISTED_BYTES = 4 * 1024 * 1024;
/** So many names fit on one command line, whatever they are. */
const MAX_NAMES = 500;
const GRACE_SECONDS = 60;

export type Files = Tree & Pick<Backend, "stat" | "read" | "write" | "list" | "remove">;

/** The runner's shells know the functions of `PRELUDE`. */
export function shellFiles(runner: Runner, workdir: string): Files {
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
  runner: Pick<Runner, "runOnce">,
  workdir: string,
  signal: AbortSignal,
): Promise<void> {
  const before = Math.floor(Date.now() / 1000) - GRACE_SECONDS;
  const script = `fs_root ${quote(workdir)} && { fs_clear ${before} >/dev/null & }`;
  await runner.runOnce({ script }, signal);
}
