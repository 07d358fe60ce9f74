// The interface of a service that searches the web.

export interface FoundPage {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

/** Creates a service's requests and reads its answers. */
export interface SearchService {
  /** Returns a request. `base` is the configured address without a trailing slash. */
  request(query: string, count: number, options: { base: string; key: string }): SearchRequest;
  /** Returns the results in an answer. Throws if the answer has an unexpected form. */
  results(answer: unknown): readonly FoundPage[];
  /** Returns a sentence of advice for the operator about a status. */
  advice(status: number): string | undefined;
  readonly base: string;
}

export interface SearchRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** The JSON body of a POST request. If undefined, the request is a GET. */
  readonly body?: string;
}
