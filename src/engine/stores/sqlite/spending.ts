// Used and reserved amounts, in `usage.db`: the accounts that are compared with budgets, and the reports about them.
// The usage of several calls is collected briefly and counted in one transaction.

import { addUsage } from "../../../agent/core/message.ts";
import type { Logger } from "../../../lib/logger.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { dayOf } from "../../quotas/rules.ts";
import type { Spending, SpendingStore } from "../../quotas/store.ts";
import { SQLITE } from "../sql/dialect.ts";
import { COUNTING, sqlAccounting } from "../sql/spending.ts";
import { createCounting, type SumOfCalls, type UncountedUsage } from "./counting.ts";
import { executorOf, tickExecutor } from "./executor.ts";
import type { SmallFile } from "./small-file.ts";

interface Bounds {
  readonly maxNames: number;
  /** The maximum number of sums that have not been added to the tables yet. These sums are lost if the process dies. */
  readonly maxUncounted: number;
  /** The number of milliseconds for which sums can wait. Undefined if the data exists only in memory. */
  readonly countMs: number | undefined;
}

export interface SpendingOptions {
  readonly now: () => number;
  readonly logger: Logger;
  readonly bounds: Bounds;
}

/** `stop` adds all waiting sums to the tables. */
export function sqliteSpending(
  file: SmallFile,
  { now, logger, bounds }: SpendingOptions,
): { readonly store: SpendingStore; stop(): void } {
  const { maxNames, maxUncounted, countMs } = bounds;
  const change = <T>(work: () => T): T => {
    isCounted = false;
    const result = file.write(work);
    // The sums are removed only after the commit, because the commit may also fail.
    if (isCounted) uncounted.clear();
    return result;
  };
  /** Adds the waiting sums to the tables before reading or changing anything. */
  const counted = <T>(work: () => T): T =>
    change(() => {
      countAll();
      return work();
    });
  const executor = tickExecutor({ query: file.query, read: counted, write: counted });
  const countSums = createCounting(executor, { now, maxNames });
  /** Spending that is not in the tables yet, by the key of its rows. */
  const uncounted = new Map<string, UncountedUsage>();
  /** True if the change in progress has written all of these sums to the tables. */
  let isCounted = false;
  let timer: NodeJS.Timeout | undefined;

  const store: SpendingStore = {
    ...sqlAccounting(SQLITE, () => executorOf(executor, now)),

    async settle(owner, id, spending) {
      const isReserved = file.read(() => executor.ask({ sql: IS_RESERVED, values: [id] }).length > 0);
      const forget = spending && remembered(owner, spending);
      const isFull = uncounted.size > maxUncounted;
      try {
        if (isReserved || isFull)
          change(() => {
            executor.run({ sql: COUNTING.unreserve, values: [id] });
            // Reserved amounts are counted as soon as they are released.
            if (isFull || countMs !== undefined) countAll();
          });
      } catch (error) {
        // If this sum were kept, the amount would be counted twice when the caller retries, and memory would grow while
        // the file is broken.
        forget?.();
        throw error;
      }
      if (uncounted.size > 0 && countMs !== undefined) timer ??= setTimeout(countSoon, countMs).unref();
    },
  };

  return { store, stop };

  /** Adds to the uncounted sums. Returns a function that undoes the addition. */
  function remembered(owner: Owner, spending: Spending): () => void {
    const day = dayOf(now());
    const key = JSON.stringify([owner.tenant, owner.user, day, spending.agent, spending.model]);
    const before = uncounted.get(key);
    uncounted.set(key, { owner, day, sum: plus(before?.sum, spending) });
    return () => {
      if (before) uncounted.set(key, before);
      else uncounted.delete(key);
    };
  }

  function stop(): void {
    if (countMs !== undefined) countSoon();
    clearTimeout(timer);
  }

  function countSoon(): void {
    clearTimeout(timer);
    timer = undefined;
    if (uncounted.size === 0) return;
    try {
      change(countAll);
    } catch (err) {
      logger.warn({ err }, "usage could not be written; will retry with the next model call");
    }
  }

  /** Call this within a change. */
  function countAll(): void {
    if (uncounted.size === 0 || isCounted) return;
    countSums(uncounted.values());
    isCounted = true;
  }
}

const IS_RESERVED = "SELECT 1 FROM reserved WHERE id = $1";

const plus = (sum: SumOfCalls | undefined, spending: Spending): SumOfCalls =>
  sum
    ? {
        ...sum,
        calls: sum.calls + 1,
        cost: sum.cost + spending.cost,
        usage: addUsage(sum.usage, spending.usage),
      }
    : { ...spending, calls: 1 };
