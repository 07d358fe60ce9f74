// Tavily.

import { z } from "zod";
import type { SearchService } from "./service.ts";

const TavilyAnswer = z.object({
  results: z.array(z.object({ title: z.string().nullish(), url: z.string(), content: z.string().nullish() })),
});

export const tavily: SearchService = {
  base: "https://api.tavily.com",
  request: (query, count, { base, key }) => ({
    url: new URL(`${base}/search`),
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ query, max_results: count, search_depth: "basic" }),
  }),
  results: (answer) =>
    TavilyAnswer.parse(answer).results.map(({ title, url, content }) => ({
      title: title ?? url,
      url,
      snippet: content ?? "",
    })),
  // Tavily's own status codes for a plan that is used up.
  advice: (status) => (status === 432 || status === 433 ? "The plan's limit is reached." : undefined),
};
