// Reads the web pages that a provider's own search found, and limits how many of them one reply has.

import { isObject } from "../../../lib/json.ts";
import { firstChars, visibleLine } from "../../../lib/text.ts";
import type { Citation, WebSource } from "../../core/message.ts";
import { textIn } from "../reply.ts";

/** The maximum number of pages in one reply. */
const MAX_SOURCES = 200;
/** The maximum number of cited parts in one reply. */
const MAX_CITATIONS = 1000;
const MAX_TITLE = 300;
const MAX_ADDRESS = 2000;

/**
 * Returns the page of a result or a citation. Its address is normalized, and its title is one line without
 * invisible characters.
 */
export function pageIn(value: unknown): WebSource[] {
  if (!isObject(value)) return [];
  const { protocol, href: url = "" } = URL.parse(textIn(value.url)) ?? {};
  if ((protocol !== "https:" && protocol !== "http:") || url.length > MAX_ADDRESS) return [];
  const title = firstChars(visibleLine(textIn(value.title)), MAX_TITLE);
  return [title === "" ? { url } : { url, title }];
}

/** Returns each page once, and only the first ones if there are too many. */
export function sourcesOf(pages: readonly WebSource[]): WebSource[] {
  const sources = new Map<string, WebSource>();
  for (const page of pages)
    if (sources.size < MAX_SOURCES && !sources.has(page.url)) sources.set(page.url, page);
  return [...sources.values()];
}

/** Returns only the first citations if there are too many. */
export const citationsOf = (citations: readonly Citation[]): Citation[] => citations.slice(0, MAX_CITATIONS);
