// Tracks the files and notes that a thread wrote after it had read text written by others. A thread that reads one of these
// files has also read that text. The list belongs to the user and the agent that own the files. It covers paths that tools
// write, but not files that commands change.

import { posix } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { isInside } from "../../../../lib/paths.ts";
import { randomId } from "../../../../lib/random-id.ts";
import { AppError } from "../../../core/errors.ts";
import { bounded, Reading, through } from "../../../core/flow.ts";
import type { ToolRequest } from "../../../core/hook.ts";
import type { ItemStore, Shelf } from "../../../core/items.ts";
import { rootOf } from "../../../core/run.ts";
import type { Run } from "../../../core/tool.ts";

/**
 * A reading whose text may be in a file or note. `mark` is the unique id of the name's newest mark. `writers`
 * lists the marks whose calls may still write.
 */
const MarkedReading = Reading.extend({
  mark: z.string().optional(),
  writers: z.array(z.string()).optional(),
});
type MarkedReading = z.infer<typeof MarkedReading>;

/** The readings behind each file and note, by name, oldest first. */
const Provenance = z.record(z.string(), z.array(MarkedReading));
export type Provenance = Readonly<Record<string, readonly MarkedReading[]>>;

/** Stands for all files and notes that do not fit in the list. Any call that reads could read one of them. */
const UNLISTED = "*";

const KEY = "flow:written";
/**
 * The maximum number of names. Beyond it, the readings behind the oldest names count for every call that
 * reads.
 */
const MAX_NAMES = 200;
const MAX_NAME_CHARS = 200;
/**
 * The maximum number of characters in the list, not counting `UNLISTED`. The list and its `UNLISTED` entry
 * are stored as one item.
 */
const MAX_CHARS = 60_000;
/**
 * The maximum number of concurrent calls to record for a written name. The limit is needed because a process that dies
 * leaves its calls in the list.
 */
const MAX_WRITERS = 16;
/** The maximum number of readings to keep per name. */
const MAX_SOURCES = 8;
/** The number of attempts to change the list while other runs change it too. */
const ATTEMPTS = 8;

type KnownCall = Pick<ToolRequest, "call" | "tool">;

/** Returns the file or note that a call writes to. `isWhole` is true if no earlier content remains. */
export function writtenBy({ call, tool }: KnownCall, run: Run, workdir: string) {
  const { path, name } = call.args;
  if (call.name === "write_note" && typeof name === "string")
    return { name: noteName(name, run), isWhole: true };
  if (tool?.annotations.category !== "write" || typeof path !== "string") return undefined;
  const full = posix.resolve(workdir, path);
  // Files with the same long beginning share a name, so other files behind this name may keep their content.
  return { name: cut(full), isWhole: call.name === "write_file" && full.length <= MAX_NAME_CHARS };
}

/**
 * Returns the names in the list that a call reads: a file, the files of a folder, or notes. Includes
 * `UNLISTED`.
 */
export function readBy({ call, tool }: KnownCall, written: Provenance, run: Run, workdir: string): string[] {
  const { path = ".", name } = call.args;
  if (call.name === "read_note") return namesIn(written, (each) => each === noteName(String(name), run));
  if (call.name === "list_notes") return namesIn(written, (each) => each.startsWith(noteName("", run)));
  if (tool?.annotations.category !== "read" || typeof path !== "string") return [];
  const full = cut(posix.resolve(workdir, path));
  return namesIn(written, (each) => each === full || isInside(full, each));
}

/** Returns the names that match, and `UNLISTED`, which may contain further matches. */
export const namesIn = (written: Provenance, matches: (name: string) => boolean): string[] =>
  Object.keys(written).filter((each) => each === UNLISTED || matches(each));

/** Returns the readings behind names, marked as having arrived through these names. */
export const readingsBehind = (names: readonly string[], written: Provenance): Reading[] =>
  names.flatMap((name) => {
    const readings = (written[name] ?? []).map(({ mark: _, writers: __, ...reading }) => reading);
    return through(readings, name === UNLISTED ? "one of many unlisted files" : `\`${name}\``);
  });

const noteName = (name: string, run: Run) => `note ${rootOf(run)} ${name}`;

const cut = (name: string) => name.slice(0, MAX_NAME_CHARS);

export async function readWritten(items: ItemStore, shelf: Shelf): Promise<Provenance> {
  return Provenance.safeParse((await items.get(shelf, KEY))?.value).data ?? {};
}

/**
 * Adds readings to a name. Call it before the name is written, and call `settleWritten` with the returned
 * mark afterwards. Until then, no other thread can remove the name.
 */
export async function markWritten(
  items: ItemStore,
  shelf: Shelf,
  { name, readings }: { readonly name: string; readonly readings: readonly Reading[] },
): Promise<string> {
  const mark = randomId();
  await changeList(items, shelf, ({ [name]: before = [], ...others }) => {
    const writers = [...(before[0]?.writers ?? []), mark].slice(-MAX_WRITERS);
    const marked = bounded([...before, ...readings], MAX_SOURCES).map((each) => ({ ...each, mark, writers }));
    return fitting({ ...others, [name]: marked });
  });
  return mark;
}

/** Records that the call of a mark has finished writing. */
export const settleWritten = (
  items: ItemStore,
  shelf: Shelf,
  { name, mark }: { readonly name: string; readonly mark: string },
): Promise<void> =>
  changeList(items, shelf, ({ [name]: marked, ...others }) => {
    if (!marked?.some(({ writers = [] }) => writers.includes(mark))) return undefined;
    const settled = marked.map(({ writers = [], ...each }) => {
      const left = writers.filter((other) => other !== mark);
      return left.length > 0 ? { ...each, writers: left } : each;
    });
    return { ...others, [name]: settled };
  });

/**
 * Removes a name whose whole content is new. Keeps the name if another thread has marked it since `before` was
 * read, even with the same readings, or may still write it.
 */
export const unmarkWritten = (
  items: ItemStore,
  shelf: Shelf,
  { name, before }: { readonly name: string; readonly before: readonly MarkedReading[] },
): Promise<void> =>
  changeList(items, shelf, ({ [name]: now = [], ...others }) =>
    isDeepStrictEqual(now, before) && !now.some(({ writers }) => writers) ? others : undefined,
  );

/** Applies a change to the newest list. Writes nothing if the change returns undefined. */
async function changeList(
  items: ItemStore,
  shelf: Shelf,
  change: (written: Provenance) => Provenance | undefined,
): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const item = await items.get(shelf, KEY);
    const value = change(Provenance.safeParse(item?.value).data ?? {});
    if (!value || (await items.put(shelf, { key: KEY, value, version: item?.version ?? 0 }))) return;
  }
  throw new AppError("unavailable", "Too many runs write files at once. Try again.");
}

/** Moves the readings behind the oldest names to `UNLISTED` until the list fits. */
function fitting({ [UNLISTED]: unlisted = [], ...written }: Provenance): Provenance {
  let left = MAX_CHARS;
  const entries = Object.entries(written).reverse();
  const kept = entries.slice(0, MAX_NAMES).filter((entry) => {
    left -= JSON.stringify(entry).length;
    return left >= 0;
  });
  const moved = entries.slice(kept.length).flatMap(([, readings]) => readings);
  const all = bounded([...unlisted, ...moved], MAX_SOURCES);
  return { ...(all.length > 0 ? { [UNLISTED]: all } : {}), ...Object.fromEntries(kept.reverse()) };
}
