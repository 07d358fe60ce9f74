// The rules of an edit, which decide which text is replaced and with which line endings.

import { setImmediate as turn } from "node:timers/promises";
import { indexIn } from "../lib/search.ts";
import { fromUtf16, toUtf16, utf16Of } from "../lib/utf16.ts";

/** Converts a file's bytes to characters for searching, and back. */
interface Characters {
  readonly text: string;
  /** Converts a text in the edit to the file's encoding. */
  of(text: string): string;
  toBytes(text: string): Buffer;
}

/** Each byte becomes one character unless the file is UTF-16. Every byte that is not replaced stays the same. */
function charactersOf(bytes: Buffer): Characters {
  const order = utf16Of(bytes);
  const text = order && fromUtf16(bytes, order);
  if (order === undefined || text === undefined)
    return {
      text: bytes.toString("latin1"),
      of: (text) => Buffer.from(text).toString("latin1"),
      toBytes: (text) => Buffer.from(text, "latin1"),
    };
  return { text, of: (text) => text, toBytes: (text) => toUtf16(text, order) };
}

/**
 * Replaces the first exact occurrence of `oldText`, or else the first that differs only in line endings. Models write
 * `\n`, so `newText` gets the line endings of the replaced text. Returns undefined if `oldText` does not occur.
 */
export async function replaceFirst(
  bytes: Buffer,
  oldText: string,
  newText: string,
): Promise<Buffer | undefined> {
  const { text, of, toBytes } = charactersOf(bytes);
  const [old, fresh] = [of(oldText), of(newText)];
  const exact = await placeOf(text, old);
  const place = exact === -1 ? await unlikeInLineEnds(text, old) : { start: exact, end: exact + old.length };
  if (!place) return undefined;
  const ends = lineEndAt(text, place);
  const isGiven = ends === "\n" && exact !== -1;
  const replacement = isGiven ? fresh : unix(fresh).replaceAll("\n", ends);
  return toBytes(text.slice(0, place.start) + replacement + text.slice(place.end));
}

/** The number of characters to search per tick of the event loop. */
const PART = 1_000_000;

async function placeOf(text: string, needle: string): Promise<number> {
  for (let from = 0; ; from += PART) {
    // A match that begins in this part may end in the next part.
    const at = indexIn(text.slice(from, from + PART + needle.length), needle);
    if (at !== -1) return from + at;
    if (from + PART >= text.length) return -1;
    await turn();
  }
}

interface TextRange {
  readonly start: number;
  readonly end: number;
}

const unix = (text: string) => text.replaceAll("\r\n", "\n");

async function unlikeInLineEnds(text: string, old: string): Promise<TextRange | undefined> {
  const [plain, wanted] = [unix(text), unix(old)];
  if (plain === text && wanted === old) return undefined;
  const at = await placeOf(plain, wanted);
  if (at === -1) return undefined;
  const start = inOriginal(text, at);
  return { start, end: inOriginal(text, at + wanted.length) };
}

/**
 * Maps an index in `unix(text)` to the index of the same character in `text`. For a line ending, this is the index
 * of its `\r`.
 */
function inOriginal(text: string, index: number): number {
  let at = index;
  for (let end = text.indexOf("\r\n"); end !== -1 && end < at; end = text.indexOf("\r\n", end + 2)) at++;
  return at;
}

/** Returns the first line ending at or after the start of the range. If none follows, returns the one before it. */
function lineEndAt(text: string, { start }: TextRange): "\n" | "\r\n" {
  const next = text.indexOf("\n", start);
  const at = next === -1 ? text.lastIndexOf("\n", start) : next;
  return at > 0 && text[at - 1] === "\r" ? "\r\n" : "\n";
}
