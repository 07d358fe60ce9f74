// Lists that only grow, such as an audit: documents that are never changed, in the order in which they were created.

import { randomId } from "../lib/random-id.ts";
import {
  type Documents,
  type ListedCollection,
  type ListedDocument,
  type Retention,
  TRIMMED,
} from "./documents.ts";
import type { Page } from "./stores.ts";

const TIME_DIGITS = 9;
const COUNT_DIGITS = 4;
let appended = 0;

/** Keys of one process grow, so that what it appends within a millisecond stays in its order. */
function nextKey(): string {
  appended = (appended + 1) % 36 ** COUNT_DIGITS;
  const time = Date.now().toString(36).padStart(TIME_DIGITS, "0");
  return `${time}${appended.toString(36).padStart(COUNT_DIGITS, "0")}${randomId()}`;
}

/** Appends an entry, and returns its key. */
export async function append(documents: Documents, list: ListedCollection, body: string): Promise<string> {
  const key = nextKey();
  await documents.write(list, [{ key, seen: undefined, body }], { version: `v${randomId()}` });
  return key;
}

/** Entries, newest first. */
export const entriesOf = (
  documents: Documents,
  list: ListedCollection,
  page: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<Page<ListedDocument>> => documents.page(list, { order: "created", ...page });

/** Deletes all entries that are not to stay, in slices. Returns how many. */
export async function retain(
  documents: Documents,
  list: ListedCollection,
  retention: Retention,
  signal: AbortSignal,
): Promise<number> {
  let trimmed = 0;
  for (;;) {
    signal.throwIfAborted();
    const count = await documents.trim(list, retention);
    trimmed += count;
    if (count < TRIMMED) return trimmed;
  }
}
