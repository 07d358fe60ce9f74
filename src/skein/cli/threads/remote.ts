// The threads of a running server, over HTTP. The key determines their owner.

import { AppError } from "../../../agent/core/errors.ts";
import { ConnectionLost, createClient, ProblemError } from "../../../client/client.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { ReadableThreads } from "./export.ts";

export interface Remote {
  readonly url: string;
  readonly key: string | undefined;
}

/**
 * Each method throws `unavailable` if the server refuses the request or does not respond, and `not_found` in the same
 * cases as a store.
 */
export function remoteThreads({ url, key }: Remote): ReadableThreads {
  const headers = omitUndefined({ authorization: key && `Bearer ${key}` });
  const { threads } = createClient({ baseUrl: url, headers });
  const asStore = (error: unknown): never => {
    if (isNotFound(error)) throw new AppError("not_found", error.message);
    if (!(error instanceof ProblemError || error instanceof ConnectionLost)) throw error;
    throw new AppError("unavailable", `${url}: ${error.message}`, { cause: error });
  };
  return {
    async list(_, { children, ...query }) {
      const asked = { ...omitUndefined(query), ...(children ? { children: "true" as const } : {}) };
      return omitUndefined(await threads.list(asked).catch(asStore));
    },
    get: (_, id) => threads.get(id).catch((error) => (isNotFound(error) ? undefined : asStore(error))),
    messages: async (_, id, query = {}) =>
      (await threads.messages(id, omitUndefined(query)).catch(asStore)).items,
    state: async (_, id) => ({ ...(await threads.state(id).catch(asStore)) }),
  };
}

const isNotFound = (error: unknown): error is ProblemError =>
  error instanceof ProblemError && error.status === 404;
