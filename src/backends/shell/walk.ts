// Finding the files below a folder: one `find`, bounded in what it prints.

import type { Found } from "../../core/backend.ts";
import { STAGING } from "./prelude.ts";
import { quote } from "./runner.ts";
import { perform, type Target, wordsOf } from "./target.ts";

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
