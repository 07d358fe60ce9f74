// Pages of logs for the viewers of this process. However many replay at once, a bounded number of pages is on its way from
// Redis, so that runs never wait behind more than these; viewers who want the same page at the same time share it.
// A viewer asks for the next page when it has taken the one before. When Redis is away, all who wait get `unavailable` as
// soon as one of them does.

import { hasCode } from "../../core/errors.ts";
import type { Cursor, RunKey } from "../../core/stores.ts";
import type { Connection } from "./connection.ts";
import type { Page, Pages } from "./pages.ts";

/** Pages on their way at once: about 1 MiB, unless single events are larger. */
const AT_ONCE = 4;

export function createReplays(
  pages: Pick<Pages, "read">,
  redis: Pick<Connection, "isInRun">,
): Pick<Pages, "read"> {
  const wanted = new Map<string, Promise<Page | undefined>>();
  const waiting: PromiseWithResolvers<void>[] = [];
  let reading = 0;

  return {
    read(run, after) {
      // A run does not wait behind viewers.
      if (redis.isInRun) return pages.read(run, after);
      const name = nameOf(run, after);
      const page = wanted.get(name) ?? inTurn(() => pages.read(run, after));
      if (!wanted.has(name)) {
        wanted.set(name, page);
        const forget = () => void wanted.delete(name);
        page.then(forget, forget);
      }
      return page;
    },
  };

  async function inTurn<T>(read: () => Promise<T>): Promise<T> {
    if (reading < AT_ONCE) reading++;
    else await queued();
    try {
      return await read();
    } catch (error) {
      // Reading each of them in its turn would take as long as this again, every time.
      if (hasCode(error, "unavailable")) for (const { reject } of waiting.splice(0)) reject(error);
      throw error;
    } finally {
      const next = waiting.shift();
      if (next) next.resolve();
      else reading--;
    }
  }

  function queued(): Promise<void> {
    const turn = Promise.withResolvers<void>();
    waiting.push(turn);
    return turn.promise;
  }
}

function nameOf({ owner, thread_id, run_id }: RunKey, { seq, epoch }: Cursor): string {
  return JSON.stringify([owner.tenant, owner.user, thread_id, run_id, seq, epoch]);
}
