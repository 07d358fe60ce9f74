// The web pages that an answer cites, as OpenAI's annotations. An annotation marks a position in the text, so a page is
// cited where the text contains its URL.

import type { AssistantMessage, ToolMessage } from "../../../agent/core/message.ts";
import { indexIn } from "../../../lib/search.ts";

type Source = NonNullable<ToolMessage["sources"]>[number];

interface Citation {
  readonly type: "url_citation";
  readonly start_index: number;
  /** The index of the last character after the URL. */
  readonly end_index: number;
  readonly url: string;
  readonly title: string;
}

/** The maximum number of pages to look for in an answer. */
const MOST = 100;

/** Returns the places that the provider itself cited. */
export const citedIn = ({ citations = [] }: Pick<AssistantMessage, "citations">): Citation[] =>
  citations.map(({ title = "", ...place }) => ({ type: "url_citation", ...place, title }));

/** Collects the sources of results until an answer uses them. */
export function citing() {
  const byUrl = new Map<string, Source>();
  return {
    see({ sources = [] }: Pick<ToolMessage, "sources">): void {
      for (const source of sources) if (byUrl.size < MOST) byUrl.set(source.url, source);
    },
    /** Returns the citations in a text, in the order in which they appear. */
    in(text: string): Citation[] {
      return [...byUrl.values()]
        .flatMap((source) => citationOf(text, source))
        .sort((a, b) => a.start_index - b.start_index);
    },
    clear: () => byUrl.clear(),
  };
}

function citationOf(text: string, { url, title = "" }: Source): Citation[] {
  for (let at = indexIn(text, url); at !== -1; at = indexIn(text, url, at + url.length)) {
    const end_index = at + url.length;
    if (!GOES_ON.test(text.slice(end_index, end_index + 2)))
      return [{ type: "url_citation", start_index: at, end_index, url, title }];
  }
  return [];
}

/** Another URL begins with this one. */
const GOES_ON = /^(?:[\p{L}\p{N}/?#%&=~+_-]|[.:,;!][\p{L}\p{N}])/u;
