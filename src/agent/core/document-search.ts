// Searches short texts in documents, such as names of prompts. It reads documents page by page, so it works the same in every
// store, and each call reads a limited number of documents.

import { omitUndefined } from "../../lib/omit-undefined.ts";
import { mapInTicks } from "../../lib/ticks.ts";
import { compatibleForm } from "../../lib/unicode.ts";
import type { Documents, ListedCollection, ListedDocument } from "./documents.ts";
import type { Page } from "./stores.ts";

/**
 * The maximum number of documents that one call reads. At this limit, the call returns a cursor even with
 * fewer matches than requested.
 */
export const SEARCHED = 1_000;
const PAGE = 100;
/** The maximum number of words in a search. Any further words are ignored. */
const MAX_WORDS = 16;
/** The maximum number of characters of a text or a search to compare. */
export const SEARCHED_CHARS = 4_096;

export interface DocumentSearch {
  /**
   * The words or beginnings of words to find, in upper or lower case. A text must contain all of them to
   * match. A search without words matches every text.
   */
  readonly q: string;
  /**
   * The prefix of the keys. With a prefix, matches are sorted by key. Without one, the most recently written
   * document comes first.
   */
  readonly prefix?: string;
  /** Returns the text of a document to search. */
  readonly textOf: (document: ListedDocument) => string;
  /** The maximum number of matches, at least 1. */
  readonly limit: number;
  /** The `next_cursor` of a previous search in the same order. */
  readonly cursor?: string | undefined;
}

/** Returns a page of matching documents. Throws `invalid_request` for a cursor from another list. */
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
    const page: Page<ListedDocument> = await documents.page(collection, { ...order, limit: PAGE, cursor });
    const matches = await matchesOf(page.items);
    const added = matches.slice(0, limit - found.length);
    const last = found.length + added.length === limit ? added.at(-1) : undefined;
    if (last && last !== page.items.at(-1)) {
      // The next page of the search must start within this page of documents, so read the page again up to
      // the last match.
      const { items, next_cursor } = await documents.page(collection, {
        ...order,
        limit: page.items.indexOf(last) + 1,
        cursor,
      });
      // Another writer changed the list in the meantime: read the page again.
      if (items.at(-1)?.key !== last.key) continue;
      return { items: [...found, ...added], ...omitUndefined({ next_cursor }) };
    }
    found.push(...added);
    cursor = page.next_cursor;
    if (last || cursor === undefined) break;
  }
  return { items: found, ...omitUndefined({ next_cursor: cursor }) };

  /** Runs over as many event loop ticks as needed, because normalization can make a string much longer. */
  async function matchesOf(listed: readonly ListedDocument[]): Promise<ListedDocument[]> {
    const isMatch = (document: ListedDocument) => hasWords(textOf(document), wanted);
    const matches = await mapInTicks(collection.tenant ?? "", listed, isMatch);
    return listed.filter((_, at) => matches[at]);
  }
}

/**
 * Returns the words of `text`, which consist of letters and digits. They are case-folded and
 * Unicode-normalized, so `É` matches `é` however it is composed.
 */
const wordsOf = (text: string): string[] =>
  compatibleForm(text)
    .toLowerCase()
    .match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

function hasWords(text: string, wanted: readonly string[]): boolean {
  const words = wordsOf(text.slice(0, SEARCHED_CHARS));
  return wanted.every((start) => words.some((word) => word.startsWith(start)));
}
