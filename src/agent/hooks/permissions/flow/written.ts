// Files and notes that a thread wrote after it had read the words of others. Another thread that reads one of them has read these
// words too. The list belongs to the user and the agent whose files they are. It knows what tools write by path, not what commands do.

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
 * A reading behind a name. `mark` is the id of the newest mark of this name, which no other mark has. `writers`: the marks whose calls
 * may still write.
 */
const MarkedReading = Reading.extend({
  mark: z.string().optional(),
  writers: z.array(z.string()).optional(),
});
type MarkedReading = z.infer<typeof MarkedReading>;

/** The readings behind each file and note, by name, oldest first. */
const Provenance = z.record(z.string(), z.array(MarkedReading));
export type Provenance = Readonly<Record<string, readonly MarkedReading[]>>;

/** The name of the readings behind files and notes that do not fit in the list. Any read could be of one of them. */
const UNLISTED = "*";

const KEY = "flow:written";
/** Maximum number of names. Beyond it, the readings behind the oldest count for every read. */
const MAX_NAMES = 200;
const MAX_NAME_CHARS = 200;
/** Maximum characters of the list without `UNLISTED`. Both are one item. */
const MAX_CHARS = 60_000;
/** Maximum number of concurrent calls to record for a written name. A process that dies leaves its own calls in the list. */
const MAX_WRITERS = 16;
/** Maximum number of readings that a name keeps. */
const MAX_SOURCES = 8;
/** Attempts to change the list while other runs change it. */
const ATTEMPTS = 8;

type KnownCall = Pick<ToolRequest, "call" | "tool">;

/** The file or note that a call writes. `isWhole`: nothing of the earlier content is left. */
export function writtenBy({ call, tool }: KnownCall, run: Run, workdir: string) {
  const { path, name } = call.args;
  if (call.name === "write_note" && typeof name === "string")
    return { name: noteName(name, run), isWhole: true };
  if (tool?.annotations.category !== "write" || typeof path !== "string") return undefined;
  const full = posix.resolve(workdir, path);
  // Files with the same long beginning share a name, and the others may not be new.
  return { name: cut(full), isWhole: call.name === "write_file" && full.length <= MAX_NAME_CHARS };
}

/** The names in the list that a call reads: a file, the files of a folder, or notes. Includes `UNLISTED`. */
export function readBy({ call, tool }: KnownCall, written: Provenance, run: Run, workdir: string): string[] {
  const { path = ".", name } = call.args;
  if (call.name === "read_note") return namesIn(written, (each) => each === noteName(String(name), run));
  if (call.name === "list_notes") return namesIn(written, (each) => each.startsWith(noteName("", run)));
  if (tool?.annotations.category !== "read" || typeof path !== "string") return [];
  const full = cut(posix.resolve(workdir, path));
  return namesIn(written, (each) => each === full || isInside(full, each));
}

/** The names that match, and `UNLISTED`, behind which a name may match. */
export const namesIn = (written: Provenance, matches: (name: string) => boolean): string[] =>
  Object.keys(written).filter((each) => each === UNLISTED || matches(each));

/** The readings behind names, as they come through these. */
export const readingsBehind = (names: readonly string[], written: Provenance): Reading[] =>
  names.flatMap((name) => {
    const readings = (written[name] ?? []).map(({ mark: _, writers: __, ...reading }) => reading);
    return through(readings, name === UNLISTED ? "one of more files than are listed" : `\`${name}\``);
  });

const noteName = (name: string, run: Run) => `note ${rootOf(run)} ${name}`;

const cut = (name: string) => name.slice(0, MAX_NAME_CHARS);

export async function readWritten(items: ItemStore, shelf: Shelf): Promise<Provenance> {
  return Provenance.safeParse((await items.get(shelf, KEY))?.value).data ?? {};
}

/**
 * Adds readings to a name. Call it before the name is written, and `settleWritten` with the returned mark
 * afterwards: until then no other thread forgets the name.
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

/** Notes that the call of a mark no longer writes. */
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
 * Forgets a name whose whole content is new, unless another thread has marked it since `before` was read, also
 * with the same readings, or may still write it.
 */
export const unmarkWritten = (
  items: ItemStore,
  shelf: Shelf,
  { name, before }: { readonly name: string; readonly before: readonly MarkedReading[] },
): Promise<void> =>
  changeList(items, shelf, ({ [name]: now = [], ...others }) =>
    isDeepStrictEqual(now, before) && !now.some(({ writers }) => writers) ? others : undefined,
  );

/** Applies a change to the newest list. Nothing is written when it returns undefined. */
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
