// Sends requests to the native API: builds the URL and headers, and types the response by operation.

import { connect, type HttpConnection, ProblemError } from "./connection.ts";
import type { Operations } from "./wire.ts";

export type ClientHeaders = Readonly<Record<string, string>>;

/** Returns the headers for the next request. After a 401, it is called with the refusal and can return new headers. */
export type HeadersFunction = (refusal?: ProblemError) => ClientHeaders | Promise<ClientHeaders>;

export interface RequestOptions {
  readonly base: string;
  readonly headers: ClientHeaders | HeadersFunction | undefined;
  readonly fetch: typeof fetch;
  readonly silenceMs: number;
}

export type Operation = keyof Operations;
/** Makes a request type read-only, because the client never changes its arguments. */
export type Sent<T> = unknown extends T ? T : T extends object ? { readonly [K in keyof T]: Sent<T[K]> } : T;
export type Body<K extends Operation> = Operations[K] extends { body: infer B } ? Sent<B> : never;
export type Query<K extends Operation> = Operations[K] extends { query: infer Q } ? Readonly<Q> : never;
export type Reply<K extends Operation> = Operations[K]["answer"];
export type Input<K extends Operation> = Sent<Omit<Operations[K], "answer" | "body" | "query">> & {
  readonly query?: Query<K> | undefined;
  readonly body?: Body<K>;
};

/** Additions to one request beyond the parts that its operation defines. */
export interface Extra {
  readonly headers?: ClientHeaders;
  /** The body, used instead of JSON. */
  readonly bytes?: NonNullable<RequestInit["body"]>;
}

export type Requests = ReturnType<typeof createRequests>;

/**
 * The maximum silence for slow operations, which wait until a sandbox starts, a model answers or a large deletion ends.
 */
const SLOW_MS = 180_000;
const SLOW = /^\w+ (?:\/backend\/|\/threads\/\{thread_id\}\/title)|^(?:DELETE|POST) \/admin\//;

export function createRequests({ base, headers, fetch: send, silenceMs }: RequestOptions) {
  /**
   * Throws `ProblemError`, `ConnectionLost`, or the reason of `signal`. After a 401, retries once if the headers
   * function returns different headers. The caller must read or close the connection.
   */
  async function open<K extends Operation>(
    operation: K,
    input: Input<K>,
    signal?: AbortSignal,
    { headers: more, bytes }: Extra = {},
  ): Promise<HttpConnection> {
    const [method = "", template = ""] = operation.split(" ");
    const url = base + addressOf(template, input as Parts);
    const json = input.body === undefined ? undefined : JSON.stringify(input.body);
    const body = bytes ?? json;
    const typed = { ...(json === undefined ? {} : { "content-type": "application/json" }), ...more };
    const beginMs = SLOW.test(operation) ? Math.max(silenceMs, SLOW_MS) : silenceMs;
    const sent = (own: ClientHeaders) => {
      const init = { method, headers: { ...own, ...typed }, ...(body === undefined ? {} : { body }) };
      return connect({ fetch: send, silenceMs, beginMs }, url, init, signal);
    };
    if (typeof headers !== "function") return sent(headers ?? {});
    const own = await headers();
    return sent(own).catch(async (error: unknown) => {
      if (!(error instanceof ProblemError) || error.status !== 401) throw error;
      const renewed = await headers(error);
      if (JSON.stringify(renewed) === JSON.stringify(own)) throw error;
      return sent(renewed);
    });
  }

  return {
    open,
    /** True if a function provides the credentials, because it may provide newer ones. */
    isRenewed: typeof headers === "function",

    /** Sends a request and returns its JSON. Throws the same errors as `open`. */
    async call<K extends Operation>(
      operation: K,
      input: Input<K>,
      signal?: AbortSignal,
      extra?: Extra,
    ): Promise<Reply<K>> {
      const connection = await open(operation, input, signal, extra);
      if (connection.status !== 204) return (await connection.json()) as Reply<K>;
      connection.close();
      return undefined as Reply<K>;
    },
  };
}

interface Parts {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
}

/** Throws `TypeError` for a name that would lead to another URL. */
function addressOf(template: string, { path = {}, query = {} }: Parts): string {
  const place = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = path[name] ?? "";
    return name === "path" ? value.split("/").map(segment).join("/") : segment(assertNamed(name, value));
  });
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) asked.set(name, String(value));
  return `${place}?${asked}`.replace(/\?$/, "");
}

function assertNamed(name: string, value: string): string {
  if (value !== "") return value;
  throw new TypeError(`\`${name}\` must not be empty.`);
}

/** A URL cannot contain `.` or `..` as a path segment. */
function segment(name: string): string {
  if (name !== "." && name !== "..") return encodeURIComponent(name);
  throw new TypeError(`\`${name}\` cannot be a name in a URL.`);
}
