// What is in folders, through a helper.

import type { Found } from "../../../core/backend.ts";
import { type Facts, factsIn, garbled, textIn, wordIn } from "./answers.ts";
import { MAX_LISTED, MAX_WALKED, MAX_WALKED_BYTES } from "./bounds.ts";
import type { Link } from "./link.ts";

const FIELDS = 4;
/** Of an entry: its facts, and a name of 255 bytes. */
const ENTRY_BYTES = 350;
/** Of an answer, besides what is found. */
const EXTRA_BYTES = 64 * 1024;

interface Entry extends Facts {
  readonly name: string;
}

/** The folder's own path with links resolved, and its entries by name. */
export async function listFolder(
  link: Link,
  relative: string,
  signal: AbortSignal,
): Promise<{ folder: string; entries: readonly Entry[] }> {
  const entries: Entry[] = [];
  const request = {
    ...{ id: link.newId(), letter: "l", fields: [relative] },
    maxBytes: MAX_LISTED * ENTRY_BYTES + EXTRA_BYTES,
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

/** The regular files below a folder, links not followed, folders of these names not entered. */
export async function walk(
  link: Link,
  folder: string,
  skipped: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Found<string>> {
  const matches: string[] = [];
  const request = {
    ...{ id: link.newId(), letter: "f", fields: [folder, ...skipped] },
    maxBytes: MAX_WALKED_BYTES + EXTRA_BYTES,
    onPart(fields: readonly Buffer[]) {
      for (const field of fields) matches.push(textIn(field));
      if (matches.length > MAX_WALKED) throw garbled();
    },
    read: (fields: readonly Buffer[]) => wordIn(fields[0], { all: false, more: true }),
  };
  const truncated = await link.ask(request, signal);
  return { matches, truncated };
}
