// Counts the spending of calls in the tables of `usage.db`, and deletes old and small sums.

import type { Owner } from "../../../protocol/ids.ts";
import { dayOf, firstKeptDay, hasOwnRow, monthOf } from "../../quotas/rules.ts";
import { MAX_ROWS, MAX_USERS, OTHER, type Spending, tokensOf } from "../../quotas/store.ts";
import { namesOf } from "../row-keys.ts";
import type { Value } from "../sql/executor.ts";
import { COUNTING, REST } from "../sql/spending.ts";
import type { TickExecutor } from "./executor.ts";

/** The total spending of several calls that are counted in the same rows. */
export interface SumOfCalls extends Spending {
  readonly calls: number;
}

export interface UncountedUsage {
  readonly owner: Owner;
  readonly day: string;
  readonly sum: SumOfCalls;
}

/** Returns a function that adds sums to the tables within a change. At most `maxNames` tenants and users are kept. */
export function createCounting(
  executor: Pick<TickExecutor, "ask" | "run">,
  { now, maxNames }: { readonly now: () => number; readonly maxNames: number },
): (sums: Iterable<UncountedUsage>) => void {
  const run = (sql: string, ...values: Value[]) => executor.run({ sql, values });
  const has = (sql: string, ...values: Value[]) => executor.ask({ sql, values }).length > 0;
  const count = (sql: string, ...values: Value[]) => executor.ask<{ n: number }>({ sql, values })[0]?.n ?? 0;
  /** The day on which old rows were last deleted. */
  let cleared = "";
  /** Tenants and users with the month in which they were last counted, oldest first. Empty if all of them are kept. */
  const names = new Map<string, string>();

  return (sums) => {
    for (const { owner, day, sum } of sums) {
      const { tenant, user } = namesOf(owner);
      const month = monthOf(Date.parse(day));
      for (const name of [tenant, user]) {
        for (const period of [day, month]) run(COUNTING.spend, name, period, tokensOf(sum.usage), sum.cost);
        countRow(name, day, sum);
        remember(name, month);
      }
      countUser(tenant, JSON.stringify(owner.user), { day, sum });
    }
    clear();
  };

  function countRow(name: string, day: string, sum: SumOfCalls): void {
    const { agent, model } = sum;
    const isOwn =
      has(SQL.isCounted, name, day, agent, model) || hasOwnRow(false, count(SQL.rows, name, day), MAX_ROWS);
    const row = isOwn ? [agent, model] : [OTHER, OTHER];
    run(COUNTING.count, name, day, ...row, ...numbersOf(sum));
  }

  function countUser(tenant: string, user: string, { day, sum }: Omit<UncountedUsage, "owner">): void {
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
    // Removes several names at once, because finding them requires reading the spending of all names.
    const values = [month, name, Math.ceil(maxNames / FORGOTTEN_PART)];
    const least = executor.ask<{ name: string }>({ sql: SQL.leastSpent, values });
    for (const each of least) forget(each.name);
  }

  function forget(name: string): void {
    names.delete(name);
    for (const sql of [SQL.forgetSpent, SQL.forgetUsage, SQL.forgetUsers]) run(sql, name);
  }

  /** Runs once a day. */
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

/** The inverse of the fraction of names that are removed at once. */
const FORGOTTEN_PART = 100;

/**
 * Statements that only this store uses. This store checks whether a row exists before it counts rows, and it removes
 * names.
 */
const SQL = {
  isCounted: "SELECT 1 FROM usage WHERE name = $1 AND day = $2 AND agent = $3 AND model = $4",
  rows: "SELECT count(*) AS n FROM usage WHERE name = $1 AND day = $2",
  isUserCounted: 'SELECT 1 FROM usage_of_users WHERE tenant = $1 AND day = $2 AND "user" = $3',
  users: "SELECT count(*) AS n FROM usage_of_users WHERE tenant = $1 AND day = $2",
  leastSpent: "SELECT name FROM spent WHERE period = $1 AND name <> $2 ORDER BY tokens, cost LIMIT $3",
  forgetSpent: "DELETE FROM spent WHERE name = $1",
  forgetUsage: "DELETE FROM usage WHERE name = $1",
  forgetUsers: "DELETE FROM usage_of_users WHERE tenant = $1",
};

function numbersOf({ calls, usage, cost }: SumOfCalls): number[] {
  const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = usage;
  const estimated = usage.estimated ? 1 : 0;
  return [calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost, estimated];
}
