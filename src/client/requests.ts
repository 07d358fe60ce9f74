// Requests to the native API: the address, the headers, and what comes back, typed by operation.

import { type Connection, connect, ProblemError } from "./connection.ts";
import type { Operations } from "./wire.ts";

export type ClientHeaders = Readonly<Record<string, string>>;

/** Given the refusal of its last headers, if they were refused, it can get new ones. */
export type HeadersFunction = (refusal?: ProblemError) => ClientHeaders | Promise<ClientHeaders>;

export interface RequestOptions {
  readonly base: string;
  readonly headers: ClientHeaders | HeadersFunction | undefined;
  readonly fetch: typeof fetch;
  readonly silenceMs: number;
}

export type Operation = keyof Operations;
/** What is sent: the client changes nothing of it. */
export type Sent<T> = unknown extends T ? T : T extends object ? { readonly [K in keyof T]: Sent<T[K]> } : T;
export type Body<K extends Operation> = Operations[K] extends { body: infer B } ? Sent<B> : never;
export type Query<K extends Operation> = Operations[K] extends { query: infer Q } ? Readonly<Q> : never;
export type Reply<K extends Operation> = Operations[K]["answer"];
export type Input<K extends Operation> = Sent<Omit<Operations[K], "answer" | "body" | "query">> & {
  readonly query?: Query<K> | undefined;
  readonly body?: Body<K>;
};

/** Of one request, beyond the operation. */
export interface Extra {
  readonly headers?: ClientHeaders;
  /** In place of JSON. */
  readonly bytes?: NonNullable<RequestInit["body"]>;
}

export type Requests = ReturnType<typeof createRequests>;

/** How long these may be silent: they wait until a sandbox has started, for a model, or until much is deleted. */
const SLOW_MS = 180_000;
const SLOW = /^\w+ (?:\/backend\/|\/threads\/\{thread_id\}\/title)|^(?:DELETE|POST) \/admin\//;

export function createRequests({ base, headers, fetch: send, silenceMs }: RequestOptions) {
  /**
   * Throws `ProblemError`, `ConnectionLost`, or the reason of `signal`. Asks once more after a 401, when a function gives
   * other headers for it. The caller reads or closes the connection.
   */
  async function open<K extends Operation>(
    operation: K,
    input: Input<K>,
    signal?: AbortSignal,
    { headers: more, bytes }: Extra = {},
  ): Promise<Connection> {
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
    /** Whether the credentials come from a function, which may have newer ones. */
    isRenewed: typeof headers === "function",

    /** Throws as `open`. */
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

/** Throws `TypeError` for a name that would lead to another address. */
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
  throw new TypeError(`\`${name}\` is empty.`);
}

/** A URL has no way to write these two as names. */
function segment(name: string): string {
  if (name !== "." && name !== "..") return encodeURIComponent(name);
  throw new TypeError(`\`${name}\` cannot be a part of an address.`);
}
