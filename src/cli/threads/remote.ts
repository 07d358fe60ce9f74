// The threads of a running server, over HTTP. The key determines their owner.

import { ConnectionLost, connect, ProblemError } from "../../client/connection.ts";
import { AppError } from "../../core/errors.ts";
import type { Message } from "../../core/message.ts";
import type { Thread } from "../../core/records.ts";
import type { Page } from "../../core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { ReadableThreads } from "./export.ts";

const SILENCE_MS = 25_000;

export interface Remote {
  readonly url: string;
  readonly key: string | undefined;
}

/** Each throws `unavailable` when the server refuses or does not answer; the refusal is its `cause`. */
export function remoteJson({ url, key }: Remote) {
  const base = url.replace(/\/+$/, "");
  const headers = omitUndefined({ authorization: key && `Bearer ${key}` });

  async function request(path: string, init: RequestInit): Promise<unknown> {
    const options = { fetch, silenceMs: SILENCE_MS };
    try {
      return await (await connect(options, base + path, init)).json();
    } catch (error) {
      if (!(error instanceof ProblemError || error instanceof ConnectionLost)) throw error;
      throw new AppError("unavailable", `${base}: ${error.message}`, { cause: error });
    }
  }

  async function getIfThere(path: string, query: object = {}): Promise<unknown> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) search.set(name, String(value));
    return request(`${path}?${search}`, { headers }).catch((error: unknown) => {
      if (problemOf(error)?.status === 404) return undefined;
      throw error;
    });
  }

  return {
    /** `undefined` when the server answers 404. */
    getIfThere,
    async get(path: string, query?: object): Promise<unknown> {
      const answer = await getIfThere(path, query);
      if (answer === undefined) throw new AppError("unavailable", `${base}${path} was not found.`);
      return answer;
    },
    post: (path: string, body: unknown): Promise<unknown> =>
      request(path, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
  };
}

/** The server's refusal, if this is one. */
export function problemOf(error: unknown): ProblemError | undefined {
  if (error instanceof ProblemError) return error;
  return error instanceof AppError && error.cause instanceof ProblemError ? error.cause : undefined;
}

/** The threads of a running server. */
export function remoteThreads(remote: Remote): ReadableThreads {
  const { get, getIfThere } = remoteJson(remote);
  return {
    // Safe: the server's response schemas produced these values.
    list: async (_, query) => (await get("/threads", omitUndefined(query))) as Page<Thread>,
    get: async (_, id) => (await getIfThere(pathOf(id))) as Thread | undefined,
    messages: async (_, id, query = {}) =>
      ((await getThere(`${pathOf(id)}/messages`, omitUndefined(query))) as { items: Message[] }).items,
    state: async (_, id) => (await getThere(`${pathOf(id)}/state`)) as Record<string, unknown>,
  };

  /** Throws `not_found` as a store does. */
  async function getThere(path: string, query?: object): Promise<unknown> {
    const answer = await getIfThere(path, query);
    if (answer === undefined) throw new AppError("not_found", `${path} was not found.`);
    return answer;
  }
}

const pathOf = (id: string) => `/threads/${encodeURIComponent(id)}`;
