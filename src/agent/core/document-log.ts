// Append-only lists, such as an audit log: immutable documents in order of creation.

import { randomId } from "../../lib/random-id.ts";
import {
  type Documents,
  type ListedCollection,
  type ListedDocument,
  newVersion,
  type Retention,
  retain,
} from "./documents.ts";
import type { Page } from "./stores.ts";

const TIME_DIGITS = 9;
const COUNT_DIGITS = 4;
let appended = 0;

/**
 * Returns the key of a new entry. The keys of a process increase, so entries that are appended within one
 * millisecond keep their order.
 */
function nextKey(): string {
  appended = (appended + 1) % 36 ** COUNT_DIGITS;
  const time = Date.now().toString(36).padStart(TIME_DIGITS, "0");
  return `${time}${appended.toString(36).padStart(COUNT_DIGITS, "0")}${randomId()}`;
}

/** Appends an entry, then deletes the entries beyond `retention`. Returns the entry's key. */
export async function append(
  documents: Documents,
  list: ListedCollection,
  body: string,
  retention?: Retention,
): Promise<string> {
  const key = nextKey();
  await documents.write(list, [{ key, seen: undefined, body }], { version: newVersion() });
  if (retention) await retain(documents, list, retention);
  return key;
}

/** Entries, newest first. */
export const entriesOf = (
  documents: Documents,
  list: ListedCollection,
  page: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<Page<ListedDocument>> => documents.page(list, { order: "created", ...page });
