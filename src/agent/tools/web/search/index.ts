// Searches the web through the service that the operator configured.

import { httpFetch, readCapped, release, streamOf } from "../../../../lib/http-fetch.ts";
import { firstChars, visibleLine } from "../../../../lib/text.ts";
import type { ProviderSearch } from "../../../core/model.ts";
import { brave } from "./brave.ts";
import { searxng } from "./searxng.ts";
import type { FoundPage, SearchRequest, SearchService } from "./service.ts";
import { tavily } from "./tavily.ts";

export interface ServiceOptions {
  readonly provider: "searxng" | "brave" | "tavily";
  /** The address of the service. Required for SearXNG, because every operator runs their own instance. */
  readonly url?: string | undefined;
  readonly api_key?: string | undefined;
}

export type SearchOptions = ServiceOptions | ({ readonly provider: "model" } & ProviderSearch);

/** Thrown when the service cannot be used. The message is one sentence and does not contain the key. */
export class SearchError extends Error {
  readonly status: number | undefined;

  constructor(message: string, status?: number, cause?: unknown) {
    super(message, { cause });
    this.status = status;
  }
}

/** Searches the web. Throws a `SearchError` or the reason of `signal`. */
export type Search = (query: string, count: number, signal: AbortSignal) => Promise<readonly FoundPage[]>;

const SERVICES: Readonly<Record<ServiceOptions["provider"], SearchService>> = { searxng, brave, tavily };
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_TITLE = 300;
const MAX_SNIPPET = 1000;
const MAX_ADDRESS = 2000;

export function createSearch({ provider, url, api_key = "" }: ServiceOptions, userAgent: string): Search {
  const service = SERVICES[provider];
  const base = (url ?? service.base).replace(/\/+$/, "");
  return async (query, count, signal) => {
    const request = service.request(query, count, { base, key: api_key });
    const answer = await answerTo(request, { service, userAgent, signal });
    return resultsIn(answer, service).slice(0, count);
  };
}

interface SearchCall {
  readonly service: SearchService;
  readonly userAgent: string;
  readonly signal: AbortSignal;
}

/** Sends a request. Does not follow redirects, because only the operator's own address may be private. */
async function answerTo(
  { url, headers, body }: SearchRequest,
  { service, userAgent, signal }: SearchCall,
): Promise<string> {
  const response = await sent(url, {
    ...{ headers: { accept: "application/json", "user-agent": userAgent, ...headers }, signal },
    ...(body === undefined ? {} : { method: "POST", body }),
  });
  const stream = streamOf(response);
  if (!stream) throw refusal(response.status, service);
  try {
    const text = await readCapped(stream, MAX_BYTES);
    if (Buffer.byteLength(text) < MAX_BYTES) return text;
    throw new SearchError("The answer of the search service is too large.");
  } finally {
    release(stream);
  }
}

async function sent(url: URL, init: RequestInit): Promise<Response> {
  try {
    return await httpFetch(url, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new SearchError("The search service could not be reached.", undefined, error);
  }
}

function refusal(status: number, { advice }: SearchService): SearchError {
  if (status >= 300 && status < 400)
    return new SearchError("The search service answered with a redirect, which is not followed.", status);
  const said = advice(status) ?? ADVICE[status] ?? "";
  return new SearchError(`The search service answered with HTTP ${status}.${said && ` ${said}`}`, status);
}

const KEY = "The operator must check `web.search.api_key`.";
const ADVICE: Readonly<Record<number, string>> = {
  401: KEY,
  403: KEY,
  429: "There were too many searches. Try again later.",
};

function resultsIn(answer: string, service: SearchService): readonly FoundPage[] {
  try {
    return service.results(JSON.parse(answer)).flatMap(({ title, url, snippet }) => {
      const parsed = URL.parse(url);
      const isWeb = parsed?.protocol === "https:" || parsed?.protocol === "http:";
      if (!isWeb || url.length > MAX_ADDRESS) return [];
      return [{ url: parsed.href, title: plain(title, MAX_TITLE), snippet: plain(snippet, MAX_SNIPPET) }];
    });
  } catch (error) {
    throw new SearchError("The answer of the search service has an unexpected format.", undefined, error);
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  ...{ "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&#39;": "'", "&nbsp;": " ", "&amp;": "&" },
};

/** Converts a snippet to plain text. Services mark words of the query with tags and escape other tags. */
function plain(text: string, max: number): string {
  const words = text.slice(0, 4 * max).replace(/<\/?(?:strong|b|em|mark)>/g, "");
  const decoded = words.replace(
    /&(?:lt|gt|quot|#x27|#39|nbsp|amp);/g,
    (entity) => ENTITIES[entity] ?? entity,
  );
  return firstChars(visibleLine(decoded), max);
}
