// The tool that searches the web.

import { z } from "zod";
import type { ProviderSearch } from "../../core/model.ts";
import { reportFailure } from "../../core/run.ts";
import { defineTool, done, failed, type Tool } from "../../core/tool.ts";
import { framed } from "./others-words.ts";
import { type Search, SearchError } from "./search/index.ts";
import type { FoundPage } from "./search/service.ts";

const LIMIT_MS = 20_000;

const DESCRIPTION =
  "Searches the web. Returns a list of pages, each with its title, its address and a few lines of text.";
const Query = z.string().min(1).max(400).describe("Search terms, as for a search engine.");
// The query is sent to another server.
const ANNOTATIONS = { readOnly: true, category: "network" } as const;

/** A search that the model's provider executes during the model call. */
export function providerSearch({ max_uses, allowed_domains, blocked_domains }: ProviderSearch): Tool {
  const tool = defineTool({
    name: "web_search",
    description: DESCRIPTION,
    parameters: z.object({ query: Query }),
    annotations: ANNOTATIONS,
    execute: () => Promise.resolve(failed("The model's provider executes this tool. It cannot be called.")),
  });
  return { ...tool, ofProvider: { max_uses, allowed_domains, blocked_domains } };
}

export function webSearch(search: Search): Tool {
  return defineTool({
    name: "web_search",
    description: DESCRIPTION,
    parameters: z.object({
      query: Query,
      count: z.int().min(1).max(20).default(8).describe("Maximum number of pages."),
    }),
    annotations: ANNOTATIONS,
    describeCall: ({ query }) => `search the web for ${JSON.stringify(query)}`,
    async execute({ query, count }, call, run) {
      const deadline = AbortSignal.timeout(LIMIT_MS);
      try {
        const found = await search(query, count, AbortSignal.any([run.signal, deadline]));
        const sources = found.map(({ url, title }) => (title === "" ? { url } : { url, title }));
        return { ...done(framed("web_results", { query }, shown(found))), sources };
      } catch (error) {
        if (run.signal.aborted) throw error;
        if (deadline.aborted) return failed(`The search service did not answer within ${LIMIT_MS / 1000} s.`);
        if (!(error instanceof SearchError)) throw error;
        const code = error.status === undefined ? "unreachable" : `http_${error.status}`;
        reportFailure(run, { what: "tool", error, code, tool: call.name, call_id: call.id });
        return failed(error.message);
      }
    },
  });
}

function shown(found: readonly FoundPage[]): string {
  if (found.length === 0) return "(nothing found)";
  return found
    .map(({ title, url, snippet }, index) =>
      [`${index + 1}. ${title || url}`, `   ${url}`, ...(snippet ? [`   ${snippet}`] : [])].join("\n"),
    )
    .join("\n\n");
}
