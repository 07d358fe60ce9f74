// The threads of a running server, read over HTTP. The key says whose they are.

import { ConnectionLost, connect, ProblemError } from "../../client/connection.ts";
import { AppError } from "../../core/errors.ts";
import type { Message } from "../../core/message.ts";
import type { Thread } from "../../core/records.ts";
import type { Page, ThreadStore } from "../../core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";

const SILENCE_MS = 25_000;

export type ReadableThreads = Pick<ThreadStore, "list" | "get" | "messages" | "state">;

/** Throws `unavailable` when the server refuses or does not answer. */
export function remoteThreads({ url, key }: { url: string; key: string | undefined }): ReadableThreads {
  const base = url.replace(/\/+$/, "");
  const headers = omitUndefined({ authorization: key && `Bearer ${key}` });

  async function read(path: string, query?: object): Promise<unknown> {
    const answer = await readIfThere(path, query);
    if (answer === undefined) throw new AppError("unavailable", `${base}${path} is gone.`);
    return answer;
  }

  async function readIfThere(path: string, query: object = {}): Promise<unknown> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) search.set(name, String(value));
    const options = { fetch, silenceMs: SILENCE_MS };
    try {
      return await (await connect(options, `${base}${path}?${search}`, { headers })).json();
    } catch (error) {
      if (error instanceof ProblemError && error.status === 404) return undefined;
      if (!(error instanceof ProblemError || error instanceof ConnectionLost)) throw error;
      throw new AppError("unavailable", `${base}: ${error.message}`, { cause: error });
    }
  }

  return {
    // The server's schema has made these answers.
    list: async (_, query) => (await read("/threads", omitUndefined(query))) as Page<Thread>,
    get: async (_, id) => (await readIfThere(pathOf(id))) as Thread | undefined,
    messages: async (_, id, query = {}) =>
      ((await read(`${pathOf(id)}/messages`, omitUndefined(query))) as { items: Message[] }).items,
    state: async (_, id) => (await read(`${pathOf(id)}/state`)) as Record<string, unknown>,
  };
}

const pathOf = (id: string) => `/threads/${encodeURIComponent(id)}`;
