// Requests that a plugin sends to this server on behalf of a user. They need neither a connection nor credentials. Each
// has a random token, which is valid once and only in this process.

import { addAbortSignal, Readable } from "node:stream";
import type { FastifyInstance, InjectOptions } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import { orAborted } from "../../lib/async.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Authenticate } from "../auth/credentials.ts";
import { OwnerName, type Principal } from "../auth/principal.ts";

const TOKEN = "x-skein-own-request";
const BASE = "http://localhost";

export interface OwnRequests {
  /** Recognizes the server's own requests, and leaves all others to `authenticate`. */
  before(authenticate: Authenticate): Authenticate;
  /**
   * Returns a `fetch` that sends requests to `server` as a user, with the scopes `read` and `run`. Throws
   * `invalid_request` for names that credentials cannot contain.
   */
  fetchAs(server: FastifyInstance, owner: Owner): typeof fetch;
}

export function createOwnRequests(): OwnRequests {
  const senders = new Map<string, Principal>();

  return {
    before: (authenticate) => async (request) => {
      const token = request.headers[TOKEN];
      const sender = typeof token === "string" ? senders.get(token) : undefined;
      if (!sender) return authenticate(request);
      senders.delete(String(token));
      return sender;
    },

    fetchAs(server, { tenant, user }) {
      const principal: Principal = { tenant, user, scopes: ["read", "run"] };
      if (![tenant, user].every((name) => OwnerName.safeParse(name).success))
        throw new AppError("invalid_request", "fetchAs: `tenant` and `user` must be names without spaces.");
      return async (input, init) => {
        const token = randomId();
        const request = new Request(absolute(input), init);
        const sent = await injectionOf(request, token);
        senders.set(token, principal);
        try {
          return responseOf(await injected(server, sent, request.signal), { input, request });
        } finally {
          // If a request is refused before its credentials are read, its token is still unused.
          senders.delete(token);
        }
      };
    },
  };
}

const absolute = (input: string | URL | Request) =>
  input instanceof Request ? input : new URL(String(input), BASE);

async function injectionOf(request: Request, token: string) {
  const { method, headers, body } = request;
  const { pathname, search } = new URL(request.url);
  return {
    method: method as InjectOptions["method"] & string,
    url: pathname + search,
    headers: { ...Object.fromEntries(headers), [TOKEN]: token },
    payloadAsStream: true as const,
    ...(body ? { payload: Buffer.from(await request.arrayBuffer()) } : {}),
  };
}

type InjectedResponse = Awaited<ReturnType<FastifyInstance["inject"]>>;

/**
 * Throws the reason of `signal` if it aborts first. A response that arrives later is treated as if its client had
 * disconnected.
 */
async function injected(
  server: FastifyInstance,
  sent: InjectOptions,
  signal: AbortSignal,
): Promise<InjectedResponse> {
  signal.throwIfAborted();
  const answering = server.inject(sent);
  return orAborted(answering, signal).catch((error: unknown) => {
    answering.then((late) => late.raw.res.destroy()).catch(() => {});
    throw error;
  });
}

/** The statuses whose responses have no body. */
const EMPTY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Keeps each request as long as the body of its response: once a `Request` is garbage collected, its signal no longer
 * follows the caller's.
 */
const requests = new WeakMap<Readable, InjectedRequest>();

interface InjectedRequest {
  /** May be a `Request` whose signal the other one follows. */
  readonly input: unknown;
  readonly request: Request;
}

/** A reader that cancels, or whose request aborts, counts as a client that disconnects. */
function responseOf(injected: InjectedResponse, sent: InjectedRequest): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(injected.headers))
    for (const each of [value ?? []].flat()) headers.append(name, String(each));
  const stream = injected.stream();
  stream.once("close", () => injected.raw.res.destroy());
  addAbortSignal(sent.request.signal, stream);
  requests.set(stream, sent);
  const isEmpty = EMPTY.has(injected.statusCode);
  if (isEmpty) stream.resume();
  const body = isEmpty ? null : (Readable.toWeb(stream) as ReadableStream);
  return new Response(body, { status: injected.statusCode, headers });
}
