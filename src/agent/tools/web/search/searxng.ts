// SearXNG, which operators run themselves.

import { z } from "zod";
import type { SearchService } from "./service.ts";

const SearxngAnswer = z.object({
  results: z.array(z.object({ title: z.string(), url: z.string(), content: z.string().nullish() })),
});

export const searxng: SearchService = {
  base: "",
  request(query, _count, { base, key }) {
    const url = new URL(`${base}/search`);
    url.search = String(
      new URLSearchParams({ q: query, format: "json", categories: "general", pageno: "1" }),
    );
    return { url, headers: key === "" ? {} : { authorization: `Bearer ${key}` } };
  },
  results: (answer) =>
    SearxngAnswer.parse(answer).results.map(({ title, url, content }) => ({
      title,
      url,
      snippet: content ?? "",
    })),
  advice: (status) =>
    status === 403
      ? "The operator must add `json` to `search.formats` in the settings of SearXNG."
      : undefined,
};
