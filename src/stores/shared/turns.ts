// Large reads, in stores that several processes share: only a bounded number is on its way at once, so that nothing else waits
// behind more than these. Tenants take turns. When the store is unreachable, all that wait get `unavailable` as soon as one of
// them does: each by itself would wait as long again.

import { hasCode } from "../../core/errors.ts";

export type InTurn = <T>(tenant: string, read: () => Promise<T>) => Promise<T>;

export function createTurns(atOnce: number): InTurn {
  /** By tenant; the one whose turn is next comes first. */
  const waiting = new Map<string, PromiseWithResolvers<void>[]>();
  let reading = 0;

  return async (tenant, read) => {
    if (reading < atOnce) reading++;
    else await queued(tenant);
    try {
      return await read();
    } catch (error) {
      if (hasCode(error, "unavailable")) refuseAll(error);
      throw error;
    } finally {
      const next = takeNext();
      if (next) next.resolve();
      else reading--;
    }
  };

  function queued(tenant: string): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const line = waiting.get(tenant);
    if (line) line.push(turn);
    else waiting.set(tenant, [turn]);
    return turn.promise;
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

  function refuseAll(error: unknown): void {
    const all = [...waiting.values()].flat();
    waiting.clear();
    for (const { reject } of all) reject(error);
  }
}
