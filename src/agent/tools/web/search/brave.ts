// Brave Search.

import { z } from "zod";
import type { SearchService } from "./service.ts";

const BraveAnswer = z.object({
  web: z
    .object({
      results: z.array(z.object({ title: z.string(), url: z.string(), description: z.string().nullish() })),
    })
    // The field is missing if nothing was found.
    .default({ results: [] }),
});

export const brave: SearchService = {
  base: "https://api.search.brave.com/res/v1",
  request(query, count, { base, key }) {
    const url = new URL(`${base}/web/search`);
    url.search = String(new URLSearchParams({ q: query, count: String(count) }));
    return { url, headers: { "x-subscription-token": key } };
  },
  results: (answer) =>
    BraveAnswer.parse(answer).web.results.map(({ title, url, description }) => ({
      title,
      url,
      snippet: description ?? "",
    })),
  // Brave sends this status for a wrong key.
  advice: (status) => (status === 422 ? "The operator must check `web.search.api_key`." : undefined),
};
