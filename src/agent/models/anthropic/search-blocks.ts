// Reads the blocks of Anthropic's own web search: its calls, their results, and the citations of texts.

import { readArguments } from "../../core/call-arguments.ts";
import type { Citation, ProviderBlock, WebSource } from "../../core/message.ts";
import type { ModelReply } from "../../core/model.ts";
import type { Draft } from "../reading/draft.ts";
import { citationsOf, pageIn, sourcesOf } from "../reading/web-pages.ts";
import { isKeepable, jsonIn, type ProviderEvent, textIn } from "../reply.ts";

/** A block whose pieces are still arriving. */
interface OpenBlock {
  readonly block: ProviderEvent;
  readonly place: BlockPlace;
  /** The arguments of a call, as JSON. */
  json: string;
}

export interface SearchBlocks {
  /** Call this when a block begins, because the text before it has then ended. */
  end(): void;
  text(place: unknown, block: ProviderEvent): void;
  /** Begins a block of any other type. Blocks of unknown types are omitted. */
  begin(place: unknown, block: ProviderEvent): void;
  /** Returns false if the block at this place does not belong to the provider's own tools. */
  input(place: unknown, json: unknown): boolean;
  cite(place: unknown, citation: unknown): void;
  finish(): Pick<ModelReply, "provider_blocks" | "sources" | "citations">;
}

export function searchBlocks(draft: Draft, thoughts: () => number): SearchBlocks {
  const blocks: (OpenBlock | ProviderBlock)[] = [];
  const open = new Map<unknown, OpenBlock>();
  let sources: readonly WebSource[] = [];
  let found = 0;

  const placeNow = () => ({
    after_text: draft.text.length,
    after_calls: draft.callCount,
    after_thoughts: thoughts(),
  });
  const texts = citedTexts(draft, placeNow, (block) => blocks.push(block));

  const see = ({ content }: ProviderEvent) => {
    if (!Array.isArray(content)) return;
    found++;
    // The searches are counted now, because the provider reports their number only at the end.
    draft.counts.take({ server_tool_use: { web_search_requests: found } });
    sources = sourcesOf([...sources, ...content.flatMap(pageIn)]);
  };

  return {
    end: texts.end,
    text: texts.begin,
    cite: texts.cite,
    begin(at, block) {
      const type = textIn(block.type);
      if (!(type === "server_tool_use" || type.endsWith("_tool_result")) || !isKeepable(block)) return;
      draft.weigh(jsonIn(block));
      const opened = { block, place: placeNow(), json: "" };
      blocks.push(opened);
      open.set(at, opened);
      if (type === "web_search_tool_result") see(block);
    },
    input(at, json) {
      const opened = open.get(at);
      if (!opened) return false;
      opened.json += textIn(json);
      draft.weigh(textIn(json));
      return true;
    },
    finish() {
      texts.end();
      return {
        ...(blocks.length > 0 ? { provider_blocks: blocks.map(closed) } : {}),
        ...(found > 0 ? { sources } : {}),
        ...(texts.citations.length > 0 ? { citations: citationsOf(texts.citations) } : {}),
      };
    },
  };
}

type BlockPlace = Omit<ProviderBlock, "data">;

/** Reads the texts and their citations. When a text with citations ends, it becomes a block. */
function citedTexts(draft: Draft, placeNow: () => BlockPlace, keep: (block: ProviderBlock) => void) {
  const citations: Citation[] = [];
  let open: { readonly at: unknown; readonly place: BlockPlace; readonly cited: unknown[] } | undefined;
  const cite = (at: unknown, citation: unknown) => {
    if (!open || open.at !== at || !isKeepable(citation)) return;
    draft.weigh(jsonIn(citation));
    open.cited.push(citation);
  };
  return {
    citations,
    cite,
    begin(at: unknown, { citations: given }: ProviderEvent): void {
      open = { at, place: placeNow(), cited: [] };
      if (Array.isArray(given)) for (const citation of given) cite(at, citation);
    },
    end(): void {
      const { place, cited } = open ?? { cited: [] };
      open = undefined;
      if (!place || cited.length === 0 || draft.text.length === place.after_text) return;
      const part = { start_index: place.after_text, end_index: draft.text.length };
      keep({
        data: { type: "text", citations: cited },
        ...place,
        characters: part.end_index - part.start_index,
      });
      const pages = new Map(cited.flatMap(pageIn).map((page) => [page.url, page]));
      for (const page of pages.values()) citations.push({ ...part, ...page });
    },
  };
}

function closed(each: OpenBlock | ProviderBlock): ProviderBlock {
  if ("data" in each) return each;
  const { block, place, json } = each;
  return { data: json === "" ? { ...block } : { ...block, input: inputIn(json) }, ...place };
}

/** Returns the input as an object, because the provider rejects a call without one. */
function inputIn(json: string): unknown {
  const read = readArguments(json);
  return "args" in read ? read.args : {};
}
