// Reads contents and folders and searches files through the file helper. An invalid answer ends the link.

import type { FileStat, SearchMatches } from "../../../agent/core/backend.ts";
import { isoTime } from "../prelude.ts";
import { CHUNK_BYTES, type FrameField, MAX_LISTED, MAX_WALKED, MAX_WALKED_BYTES } from "./frames.ts";
import { HelperError, type Link } from "./link.ts";

/** The maximum size of an answer, not counting file contents, in bytes. */
const EXTRA_BYTES = 16 * 1024;
/** The maximum number of files in one request, and the maximum size of their paths in bytes. */
const MAX_PATHS = 256;
const MAX_PATHS_BYTES = 64 * 1024;

interface Part {
  readonly relative: string;
  readonly offset: number;
  /** The length, which may be infinite. */
  readonly length: number;
}

/** Reads part of one file. All parts come from the same file, even if it is replaced in the meantime. */
export async function* readPart(link: Link, part: Part, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const id = link.newId();
  let left = part.length;
  const ask = (letter: string, ...fields: FrameField[]) =>
    link.ask({ id, letter, fields, maxBytes: CHUNK_BYTES + EXTRA_BYTES, read: pieceOf(left) }, signal);

  const { relative, offset, length } = part;
  let piece = await ask("r", relative, decimal(offset), Number.isFinite(length) ? decimal(length) : "");
  try {
    for (;;) {
      if (piece.bytes.length > 0) yield piece.bytes;
      if (!piece.hasMore) return;
      left -= piece.bytes.length;
      piece = await ask("m");
    }
  } finally {
    if (piece.hasMore) link.drop(id);
  }
}

const decimal = (count: number) => String(Math.min(count, Number.MAX_SAFE_INTEGER));

function pieceOf(left: number) {
  return (fields: readonly Buffer[]) => {
    const hasMore = wordIn(fields[0], { 0: false, 1: true });
    const bytes = fields[1];
    if (!bytes || bytes.length > left || (hasMore && bytes.length === 0)) throw garbled();
    return { hasMore, bytes };
  };
}

/** Yields the contents of files. Omits files that are larger than `maxBytes`, missing or unreadable. */
export async function* readContents(
  link: Link,
  paths: readonly string[],
  maxBytes: number,
  signal: AbortSignal,
): AsyncGenerator<{ path: string; bytes: Uint8Array }> {
  for (let at = 0; at < paths.length; ) {
    const asked = someOf(paths, at);
    const answers = await askContents(link, asked, maxBytes, signal);
    for (const [index, { word, bytes }] of answers.entries()) {
      const path = asked[index] ?? "";
      if (word === "file") yield { path, bytes };
      const content = word === "large" ? await readLarge(link, path, maxBytes, signal) : undefined;
      if (content) yield { path, bytes: content };
    }
    at += answers.length;
  }
}

function someOf(paths: readonly string[], start: number): readonly string[] {
  let end = start;
  for (let bytes = 0; end < paths.length && end - start < MAX_PATHS; end++) {
    bytes += Buffer.byteLength(paths[end] ?? "");
    if (bytes > MAX_PATHS_BYTES && end > start) break;
  }
  return paths.slice(start, end);
}

/**
 * Requests the contents of files. The helper answers for as many of the first paths as fit into one answer,
 * and for at least one.
 */
function askContents(link: Link, paths: readonly string[], maxBytes: number, signal: AbortSignal) {
  const request = {
    letter: "c",
    fields: [decimal(maxBytes), ...paths],
    maxBytes: CHUNK_BYTES + EXTRA_BYTES,
    read(fields: readonly Buffer[]) {
      const answers = Array.from({ length: fields.length / 2 }, (_, index) => ({
        word: textIn(fields[2 * index]),
        bytes: fields[2 * index + 1] ?? Buffer.alloc(0),
      }));
      if (answers.length === 0 || answers.length > paths.length) throw garbled();
      if (answers.some(({ bytes }) => bytes.length > maxBytes)) throw garbled();
      return answers;
    },
  };
  return link.ask(request, signal);
}

async function readLarge(
  link: Link,
  relative: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of readPart(link, { relative, offset: 0, length: maxBytes + 1 }, signal)) {
      chunks.push(chunk);
      size += chunk.length;
    }
  } catch (error) {
    if (error instanceof HelperError) return undefined;
    throw error;
  }
  return size > maxBytes ? undefined : Buffer.concat(chunks);
}

const FIELDS = 4;
/** The maximum size of an entry in bytes: its attributes and a name of 255 bytes. */
const ENTRY_BYTES = 350;
/** The maximum size of an answer, not counting the entries, in bytes. */
const FOLDER_EXTRA_BYTES = 64 * 1024;

interface Entry extends Facts {
  readonly name: string;
}

/** Returns the folder's real path and its entries, sorted by name. */
export async function listFolder(
  link: Link,
  relative: string,
  signal: AbortSignal,
): Promise<{ folder: string; entries: readonly Entry[] }> {
  const entries: Entry[] = [];
  const request = {
    letter: "l",
    fields: [relative],
    maxBytes: MAX_LISTED * ENTRY_BYTES + FOLDER_EXTRA_BYTES,
    onPart(fields: readonly Buffer[]) {
      for (let at = 0; at < fields.length; at += FIELDS)
        entries.push({ name: textIn(fields[at + FIELDS - 1]), ...factsIn(fields, at) });
      if (entries.length > MAX_LISTED) throw garbled();
    },
    read: (fields: readonly Buffer[]) => textIn(fields[0]),
  };
  const folder = await link.ask(request, signal);
  return { folder, entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** Lists the regular files below a folder. Does not follow links or enter folders named in `skipped`. */
export async function findFiles(
  link: Link,
  folder: string,
  skipped: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<SearchMatches<string>> {
  const matches: string[] = [];
  const request = {
    letter: "f",
    fields: [folder, ...skipped],
    maxBytes: MAX_WALKED_BYTES + FOLDER_EXTRA_BYTES,
    onPart(fields: readonly Buffer[]) {
      for (const field of fields) matches.push(textIn(field));
      if (matches.length > MAX_WALKED) throw garbled();
    },
    read: (fields: readonly Buffer[]) => wordIn(fields[0], { all: false, more: true }),
  };
  const truncated = await link.ask(request, signal);
  return { matches, truncated };
}

export type Facts = Omit<FileStat, "path">;

const KINDS: Readonly<Record<string, FileStat["type"]>> = {
  f: "file",
  d: "directory",
  l: "symlink",
  o: "other",
};
/** Parses three fields, starting at `at`. */
export function factsIn(fields: readonly Buffer[], at: number): Facts {
  return {
    type: wordIn(fields[at], KINDS),
    size: Math.max(0, integerIn(fields[at + 1])),
    modified_at: isoTime(integerIn(fields[at + 2])),
  };
}

/** Returns the value for the word in a field. */
export function wordIn<T>(field: Buffer | undefined, values: Readonly<Record<string, T>>): T {
  const word = textIn(field);
  const value = Object.hasOwn(values, word) ? values[word] : undefined;
  if (value === undefined) throw garbled();
  return value;
}

export function textIn(field: Buffer | undefined): string {
  if (!field) throw garbled();
  return field.toString();
}

function integerIn(field: Buffer | undefined): number {
  const text = textIn(field);
  if (!/^-?\d{1,20}$/.test(text)) throw garbled();
  return Number(text);
}

export const garbled = () => new Error("it sent an invalid answer");
