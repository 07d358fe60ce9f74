// Continues replies that the provider pauses while it executes its own tools. Another request continues a paused reply, and
// both together form one reply.

import { addUsage, type ProviderBlock, type Reasoning } from "../../core/message.ts";
import type { ModelReply, ModelRequest } from "../../core/model.ts";
import { citationsOf, sourcesOf } from "../reading/web-pages.ts";
import type { ReplyReader } from "../reply.ts";

/** The maximum number of requests that continue a reply. */
export const MAX_PAUSES = 10;

/** Reads the rest of a reply. The usage and the result also include the usage and the content of the reply so far. */
export const continuing = (reader: ReplyReader, before: ModelReply): ReplyReader => ({
  take: (event, out) => reader.take(event, out),
  close: () => reader.close(),
  get ended() {
    return reader.ended;
  },
  get usage() {
    return addUsage(before.usage, reader.usage);
  },
  finish: (out) => joined(before, reader.finish(out)),
});

/**
 * Returns the request for the rest of a reply, or undefined if the reply has reached its limit of tokens or
 * searches.
 */
export function restOf(request: ModelRequest, { usage }: ModelReply): ModelRequest | undefined {
  const { outputLimit, tools } = request;
  const left = outputLimit === undefined ? undefined : outputLimit - usage.output_tokens;
  if (left !== undefined && left < 1) return undefined;
  const made = usage.web_searches ?? 0;
  // The provider does not accept a limit of 0, and it rejects the reply's blocks if the tool is missing.
  if (tools.some(({ ofProvider }) => made >= (ofProvider?.max_uses ?? Number.POSITIVE_INFINITY)))
    return undefined;
  return {
    ...request,
    tools: tools.map((tool) => {
      const most = tool.ofProvider?.max_uses;
      // The provider counts the searches per request.
      return most === undefined
        ? tool
        : { ...tool, ofProvider: { ...tool.ofProvider, max_uses: most - made } };
    }),
    ...(left === undefined ? {} : { outputLimit: left }),
  };
}

/** Joins both parts. The first one has no calls, because a reply with calls is not continued. */
function joined(before: ModelReply, after: ModelReply): ModelReply {
  const chars = before.content.length;
  const sources = [...(before.sources ?? []), ...(after.sources ?? [])];
  const hasSources = before.sources !== undefined || after.sources !== undefined;
  return {
    ...after,
    content: before.content + after.content,
    reasoning: [...before.reasoning, ...after.reasoning.map((each) => moved(each, chars))],
    usage: addUsage(before.usage, after.usage),
    provider_blocks: [
      ...(before.provider_blocks ?? []),
      ...(after.provider_blocks ?? []).map((each) => movedBlock(each, chars, before.reasoning.length)),
    ],
    ...(hasSources ? { sources: sourcesOf(sources) } : {}),
    citations: citationsOf([
      ...(before.citations ?? []),
      ...(after.citations ?? []).map((each) => ({
        ...each,
        start_index: each.start_index + chars,
        end_index: each.end_index + chars,
      })),
    ]),
  };
}

function moved({ text, metadata = {} }: Reasoning, chars: number): Reasoning {
  const { after_text } = metadata;
  const at = chars + (typeof after_text === "number" ? after_text : 0);
  return { text, metadata: { ...metadata, ...(at > 0 ? { after_text: at } : {}) } };
}

const movedBlock = (block: ProviderBlock, chars: number, thoughts: number): ProviderBlock => ({
  ...block,
  after_text: block.after_text + chars,
  after_thoughts: block.after_thoughts + thoughts,
});
