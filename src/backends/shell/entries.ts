// What `fs_tell` of the prelude prints, read.

import type { FileStat } from "../../core/backend.ts";
import type { Reply } from "./runner.ts";

/** Mode in hexadecimal, bytes, seconds, name: a slash shows that it is whole. */
const RECORD = /^([0-9a-f]+) (\d+) (-?\d+) (?:\.\/)?(.+)\/\n$/s;
/** By the fourth hexadecimal digit of the mode from the right. */
const TYPES: Readonly<Record<string, FileStat["type"]>> = { 8: "file", 4: "directory", a: "symlink" };
/** The farthest that a `Date` can tell; a disk may know times beyond. */
const MAX_SECONDS = 8_640_000_000_000;
/** More are never asked for. Who has taken over a shell can send many more, to keep us busy with them. */
const MAX_RECORDS = 10_000;

/** Paths begin with `workdir`; names that are no UTF-8 come with replacement characters. What is cut off is left out. */
export function entriesIn({ output, mark }: Reply, workdir: string): FileStat[] {
  const end = output.indexOf(0);
  const folder = `${workdir}${output.toString("utf8", 0, end)}`;
  const [, ...records] = output.toString("utf8", end).split(`${mark}:`, MAX_RECORDS + 1);
  return records.flatMap((record) => {
    const [, mode = "", size, seconds, name = ""] = RECORD.exec(record) ?? [];
    if (name === "") return [];
    const time = Math.min(Math.max(Number(seconds), -MAX_SECONDS), MAX_SECONDS);
    return {
      path: name === "." ? folder : `${folder}/${name}`,
      type: TYPES[mode.at(-4) ?? ""] ?? "other",
      size: Number(size),
      modified_at: new Date(time * 1000).toISOString(),
    };
  });
}
