// What the helper answers, read as what it may be. Anything else is thrown as garbled: it ends the line.

import type { FileStat } from "../../../core/backend.ts";

export type Facts = Omit<FileStat, "path">;

const KINDS: Readonly<Record<string, FileStat["type"]>> = {
  f: "file",
  d: "directory",
  l: "symlink",
  o: "other",
};
/** The farthest that a `Date` can tell, in seconds; a disk may know times beyond. */
const MAX_SECONDS = 8_640_000_000_000;

/** Of the three fields from `at` on. */
export function factsIn(fields: readonly Buffer[], at: number): Facts {
  const seconds = Math.min(Math.max(integerIn(fields[at + 2]), -MAX_SECONDS), MAX_SECONDS);
  return {
    type: wordIn(fields[at], KINDS),
    size: Math.max(0, integerIn(fields[at + 1])),
    modified_at: new Date(seconds * 1000).toISOString(),
  };
}

/** The value for the word in a field. */
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

export const garbled = () => new Error("an answer that makes no sense");
