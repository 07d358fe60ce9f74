// Used and reserved amounts, in `usage.db`: the accounts that budgets are compared with, and the reports of them. The usage of
// several calls waits together for a moment, and is counted in one transaction.

import { addUsage } from "../../core/message.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Owner } from "../../protocol/ids.ts";
import { dayOf, firstKeptDay, hasOwnRow, monthOf } from "../../quotas/rules.ts";
import {
  MAX_ROWS,
  MAX_USERS,
  OTHER,
  type Spending,
  type SpendingStore,
  tokensOf,
} from "../../quotas/store.ts";
import { namesOf } from "../row-keys.ts";
import { SQLITE } from "../sql/dialect.ts";
import type { Value } from "../sql/executor.ts";
import { COUNTING, REST, sqlAccounting } from "../sql/spending.ts";
import { executorOf, turnsOn } from "./executor.ts";
import type { SmallFile } from "./small-file.ts";

interface Bounds {
  readonly maxNames: number;
  /** How many sums of spending may wait until they are asked for. They do not survive the process. */
  readonly maxUncounted: number;
  /** How long they may wait, in ms; undefined where nothing survives the process. */
  readonly countMs: number | undefined;
}

export interface SpendingOptions {
  readonly now: () => number;
  readonly logger: Logger;
  readonly bounds: Bounds;
}

/** `stop` counts what still waits. */
export function sqliteSpending(
  file: SmallFile,
  { now, logger, bounds }: SpendingOptions,
): { readonly store: SpendingStore; stop(): void } {
  const { maxNames, maxUncounted, countMs } = bounds;
  const change = <T>(work: () => T): T => {
    isCounted = false;
    const result = file.write(work);
    // Not before the commit, which may fail as well.
    if (isCounted) uncounted.clear();
    return result;
  };
  /** Waiting sums are counted before anything is read or changed. */
  const counted = <T>(work: () => T): T =>
    change(() => {
      countAll();
      return work();
    });
  const turns = turnsOn({ query: file.query, read: counted, write: counted });
  const run = (sql: string, ...values: Value[]) => turns.run({ sql, values });
  const has = (sql: string, ...values: Value[]) => turns.ask({ sql, values }).length > 0;
  const count = (sql: string, ...values: Value[]) => turns.ask<{ n: number }>({ sql, values })[0]?.n ?? 0;
  /** The day on which old rows were last deleted. */
  let cleared = "";
  /** Tenants and users with the month in which they were last counted, oldest first. Empty when all of them are kept. */
  const names = new Map<string, string>();
  /** Spending that is not in the tables yet, by all that its rows are found by. */
  const uncounted = new Map<string, Uncounted>();
  /** True if the change in progress has put all of it into the tables. */
  let isCounted = false;
  let timer: NodeJS.Timeout | undefined;

  const store: SpendingStore = {
    ...sqlAccounting(SQLITE, () => executorOf(turns, now)),

    async settle(owner, id, spending) {
      const isReserved = file.read(() => has(SQL.isReserved, id));
      const forget = spending && remembered(owner, spending);
      const isFull = uncounted.size > maxUncounted;
      try {
        if (isReserved || isFull)
          change(() => {
            run(COUNTING.unreserve, id);
            // Reserved amounts are counted as soon as they are released.
            if (isFull || countMs !== undefined) countAll();
          });
      } catch (error) {
        // Kept, it would be counted twice when the caller asks again, and be more and more while the file is broken.
        forget?.();
        throw error;
      }
      if (uncounted.size > 0 && countMs !== undefined) timer ??= setTimeout(countSoon, countMs).unref();
    },
  };

  return { store, stop };

  /** Adds to what is to be counted. Returns what takes it away again. */
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
      logger.warn({ err }, "usage could not be written; it is tried again with the next model call");
    }
  }

  /** Within a change. */
  function countAll(): void {
    if (uncounted.size === 0 || isCounted) return;
    for (const { owner, day, sum } of uncounted.values()) {
      const { tenant, user } = namesOf(owner);
      const month = monthOf(Date.parse(day));
      for (const name of [tenant, user]) {
        for (const period of [day, month]) run(COUNTING.spend, name, period, tokensOf(sum.usage), sum.cost);
        countRow(name, day, sum);
        remember(name, month);
      }
      countUser(tenant, JSON.stringify(owner.user), { day, sum });
    }
    isCounted = true;
    clear();
  }

  function countRow(name: string, day: string, sum: SumOfCalls): void {
    const { agent, model } = sum;
    const isOwn =
      has(SQL.isCounted, name, day, agent, model) || hasOwnRow(false, count(SQL.rows, name, day), MAX_ROWS);
    const row = isOwn ? [agent, model] : [OTHER, OTHER];
    run(COUNTING.count, name, day, ...row, ...numbersOf(sum));
  }

  function countUser(tenant: string, user: string, { day, sum }: Omit<Uncounted, "owner">): void {
    const isOwn =
      has(SQL.isUserCounted, tenant, day, user) || hasOwnRow(false, count(SQL.users, tenant, day), MAX_USERS);
    run(COUNTING.countUser, tenant, day, isOwn ? user : REST, ...numbersOf(sum));
  }

  function remember(name: string, month: string): void {
    if (maxNames === Number.POSITIVE_INFINITY) return;
    names.delete(name);
    names.set(name, month);
    if (names.size <= maxNames) return;
    const [oldest, last] = names.entries().next().value ?? ["", month];
    if (last !== month) {
      forget(oldest);
      return;
    }
    // Several at once: finding them reads what every name has spent.
    const values = [month, name, Math.ceil(maxNames / FORGOTTEN_PART)];
    const least = turns.ask<{ name: string }>({ sql: SQL.leastSpent, values });
    for (const each of least) forget(each.name);
  }

  function forget(name: string): void {
    names.delete(name);
    for (const sql of [SQL.forgetSpent, SQL.forgetUsage, SQL.forgetUsers]) run(sql, name);
  }

  /** Once a day. */
  function clear(): void {
    const today = dayOf(now());
    if (cleared === today) return;
    cleared = today;
    const first = firstKeptDay(now());
    run(COUNTING.forgetUsage, first);
    run(COUNTING.forgetUsers, first);
    run(COUNTING.forgetSpent, monthOf(now()));
    run(COUNTING.forgetHeld, now());
  }
}

/** A hundredth of the names is forgotten at once. */
const FORGOTTEN_PART = 100;

/** Statements of this store alone: it looks before it counts rows, and forgets names. */
const SQL = {
  isReserved: "SELECT 1 FROM reserved WHERE id = $1",
  isCounted: "SELECT 1 FROM usage WHERE name = $1 AND day = $2 AND agent = $3 AND model = $4",
  rows: "SELECT count(*) AS n FROM usage WHERE name = $1 AND day = $2",
  isUserCounted: 'SELECT 1 FROM usage_of_users WHERE tenant = $1 AND day = $2 AND "user" = $3',
  users: "SELECT count(*) AS n FROM usage_of_users WHERE tenant = $1 AND day = $2",
  leastSpent: "SELECT name FROM spent WHERE period = $1 AND name <> $2 ORDER BY tokens, cost LIMIT $3",
  forgetSpent: "DELETE FROM spent WHERE name = $1",
  forgetUsage: "DELETE FROM usage WHERE name = $1",
  forgetUsers: "DELETE FROM usage_of_users WHERE tenant = $1",
};

/** The spending of several calls that are counted in the same rows. */
interface SumOfCalls extends Spending {
  readonly calls: number;
}

interface Uncounted {
  readonly owner: Owner;
  readonly day: string;
  readonly sum: SumOfCalls;
}

const plus = (sum: SumOfCalls | undefined, spending: Spending): SumOfCalls =>
  sum
    ? {
        ...sum,
        calls: sum.calls + 1,
        cost: sum.cost + spending.cost,
        usage: addUsage(sum.usage, spending.usage),
      }
    : { ...spending, calls: 1 };

function numbersOf({ calls, usage, cost }: SumOfCalls): number[] {
  const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = usage;
  const estimated = usage.estimated ? 1 : 0;
  return [calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost, estimated];
}
