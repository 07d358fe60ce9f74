// Limits large reads in stores that several processes share, so other requests wait for only a few of them. Tenants
// take turns. Each read waits for its turn within its own deadline. A slow or failing read does not affect the others.

import { AppError } from "../../../agent/core/errors.ts";
import { withTimeout } from "./outages.ts";

/** Throws `unavailable` if the turn does not come within `ms`, and the errors of `read`. */
export type ReadLimit = <T>(tenant: string, ms: number, read: () => Promise<T>) => Promise<T>;

export function limitReads(atOnce: number): ReadLimit {
  /** Waiting reads by tenant. The tenant whose turn is next comes first. */
  const waiting = new Map<string, PromiseWithResolvers<void>[]>();
  let reading = 0;

  return async (tenant, ms, read) => {
    if (reading < atOnce) reading++;
    else await queued(tenant, ms);
    try {
      return await read();
    } finally {
      const next = takeNext();
      if (next) next.resolve();
      else reading--;
    }
  };

  async function queued(tenant: string, ms: number): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const line = waiting.get(tenant);
    if (line) line.push(turn);
    else waiting.set(tenant, [turn]);
    try {
      await withTimeout(ms, turn.promise);
    } catch (cause) {
      leave(tenant, turn);
      throw new AppError("unavailable", "The store is busy. Try again later.", { cause });
    }
  }

  function leave(tenant: string, turn: PromiseWithResolvers<void>): void {
    const left = (waiting.get(tenant) ?? []).filter((each) => each !== turn);
    if (left.length > 0) waiting.set(tenant, left);
    else waiting.delete(tenant);
  }

  function takeNext(): PromiseWithResolvers<void> | undefined {
    const [first] = waiting;
    if (!first) return undefined;
    const [tenant, line] = first;
    waiting.delete(tenant);
    const next = line.shift();
    if (line.length > 0) waiting.set(tenant, line);
    return next;
  }
}
