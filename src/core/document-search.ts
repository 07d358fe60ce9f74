// Search in short texts of documents, such as the names of prompts. It reads documents page by page, so it is the same in every
// store, and what one call reads is bounded.

import { sharedTurn } from "../lib/async.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import { compatibleForm } from "../lib/unicode.ts";
import type { Documents, ListedCollection, ListedDocument } from "./documents.ts";
import type { Page } from "./stores.ts";

/** Documents that one call reads at most. Fewer matches than asked for come with a cursor when there are more to read. */
export const SEARCHED = 1_000;
const PAGE = 100;
/** Further words of a search are left out. */
const MAX_WORDS = 16;
/** Only so much of a text is searched, and of a search read, in characters. */
export const SEARCHED_CHARS = 4_096;

export interface DocumentSearch {
  /** Words, or beginnings of words, in any case: a text matches that has all of them. Without any, every text matches. */
  readonly q: string;
  /** How the keys begin, such as with their owner: the matches are in the order of keys. Otherwise those written last come first. */
  readonly prefix?: string;
  /** The text of a document that is searched. */
  readonly textOf: (document: ListedDocument) => string;
  /** Matches at most, 1 or more. */
  readonly limit: number;
  /** `next_cursor` of a search in the same order. */
  readonly cursor?: string | undefined;
}

/** Throws `invalid_request` for another cursor. */
export async function searchDocuments(
  documents: Documents,
  collection: ListedCollection,
  { q, prefix, textOf, limit, cursor: start }: DocumentSearch,
): Promise<Page<ListedDocument>> {
  const wanted = wordsOf(q.slice(0, SEARCHED_CHARS)).slice(0, MAX_WORDS);
  const order = prefix === undefined ? ({ order: "updated" } as const) : ({ order: "key", prefix } as const);
  const found: ListedDocument[] = [];
  let cursor = start;
  for (let read = 0; read < SEARCHED; read += PAGE) {
    const page = await documents.page(collection, { ...order, limit: PAGE, cursor });
    const matches = page.items.filter((document) => hasWords(textOf(document), wanted));
    const missing = limit - found.length;
    const last = matches[missing - 1];
    found.push(...matches.slice(0, missing));
    if (last && last !== page.items.at(-1)) {
      // The next page of the search begins within this one.
      const { next_cursor } = await documents.page(collection, {
        ...order,
        limit: page.items.indexOf(last) + 1,
        cursor,
      });
      return { items: found, ...omitUndefined({ next_cursor }) };
    }
    cursor = page.next_cursor;
    if (last || cursor === undefined) break;
    await sharedTurn(collection.tenant ?? "");
  }
  return { items: found, ...omitUndefined({ next_cursor: cursor }) };
}

/** Letters and digits that stand together, without case and in one form: `É` is `é`, however it is composed. */
const wordsOf = (text: string): string[] =>
  compatibleForm(text)
    .toLowerCase()
    .match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

function hasWords(text: string, wanted: readonly string[]): boolean {
  const words = wordsOf(text.slice(0, SEARCHED_CHARS));
  return wanted.every((start) => words.some((word) => word.startsWith(start)));
}
