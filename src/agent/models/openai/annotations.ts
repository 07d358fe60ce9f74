// Reads the annotations of a reply: the web pages that parts of its text come from.

import { isObject } from "../../../lib/json.ts";
import type { ModelReply } from "../../core/model.ts";
import type { Draft } from "../reading/draft.ts";
import { citationsOf, pageIn, sourcesOf } from "../reading/web-pages.ts";
import { isKeepable, jsonIn, type ProviderEvent } from "../reply.ts";

export interface Annotations {
  /** Counts a search. Call this when the reply of a model that searches begins. */
  searched(): void;
  take(annotations: unknown): void;
  finish(): Pick<ModelReply, "sources" | "citations">;
}

export function annotationsOf(draft: Draft): Annotations {
  /** By their JSON, because some servers repeat the annotations so far. */
  const cited = new Map<string, ProviderEvent>();
  // Chat Completions reports no number of searches.
  const searched = () => draft.counts.take({ server_tool_use: { web_search_requests: 1 } });
  return {
    searched,
    take(annotations) {
      if (!Array.isArray(annotations)) return;
      for (const each of annotations.filter(isObject)) {
        const { type, url_citation: citation } = each;
        if (type !== "url_citation" || !isKeepable(citation)) continue;
        const json = jsonIn(citation);
        searched();
        if (cited.has(json)) continue;
        draft.weigh(json);
        cited.set(json, citation);
      }
    },
    finish() {
      if (draft.counts.usage.web_searches === undefined) return {};
      const all = [...cited.values()];
      const placeOf = placing(draft.text);
      const citations = citationsOf(
        all.flatMap((each) =>
          pageIn(each).flatMap((page) =>
            placeOf(each).map(([start_index, end_index]) => ({ start_index, end_index, ...page })),
          ),
        ),
      );
      return { sources: sourcesOf(all.flatMap(pageIn)), ...(citations.length > 0 ? { citations } : {}) };
    },
  };
}

/**
 * Returns a function that finds the part of the text that a citation marks. Servers count either UTF-16 units or
 * code points. The part is usually a Markdown link in parentheses, so the two can be distinguished.
 */
function placing(
  text: string,
): (citation: ProviderEvent) => readonly (readonly [start: number, end: number])[] {
  let offsets: readonly number[] | undefined;
  return ({ start_index, end_index }) => {
    const [start, end] = [Number(start_index), Number(end_index)];
    const isPlace = Number.isInteger(start) && start >= 0 && start < end && end <= text.length;
    if (!isPlace) return [];
    if (LINK.test(text.slice(start, end))) return [[start, end]];
    offsets ??= offsetsOf(text);
    const [from, to] = [offsets[start], offsets[end]];
    const isInPoints = from !== undefined && to !== undefined && LINK.test(text.slice(from, to));
    return [isInPoints ? [from, to] : [start, end]];
  };
}

const LINK = /^\(?\[.*\)$/s;

/** Returns the position of each code point, and the end of the text. */
function offsetsOf(text: string): number[] {
  const offsets: number[] = [];
  let at = 0;
  for (const point of text) {
    offsets.push(at);
    at += point.length;
  }
  return [...offsets, at];
}
