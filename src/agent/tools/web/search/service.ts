// A service that searches the web: its requests and its answers.

export interface FoundPage {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

/** How a service is asked, and how its answer is read. */
export interface SearchService {
  /** `base`: the configured address, without a slash at its end. */
  request(query: string, count: number, options: { base: string; key: string }): SearchRequest;
  /** Throws if the answer has another form. */
  results(answer: unknown): readonly FoundPage[];
  /** Advice for the operator about a status, as a sentence. */
  advice(status: number): string | undefined;
  readonly base: string;
}

export interface SearchRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON of a POST. Undefined: a GET. */
  readonly body?: string;
}
