// What was used and what is reserved, in `usage.db`: the accounts that budgets are compared with, and the reports of them. What several
// calls have used waits together for a moment, and is counted in one transaction.

import { addUsage } from "../../core/message.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Owner } from "../../protocol/ids.ts";
import {
  dayOf,
  firstDay,
  firstKeptDay,
  hasOwnRow,
  hasRoom,
  monthOf,
  withReserved,
} from "../../quotas/rules.ts";
import {
  type Account,
  type Accounts,
  type Amounts,
  dearestUsers,
  MAX_ROWS,
  MAX_USERS,
  OTHER,
  type QuotaStore,
  type Spending,
  sortedRows,
  tokensOf,
} from "../../quotas/store.ts";
import { namesOf, tenantText } from "../row-keys.ts";
import { usedIn } from "../usage-rows.ts";
import type { QuotaStatements, Sum } from "./quota-tables.ts";
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

type SpendingStore = Pick<QuotaStore, "reserve" | "extend" | "settle" | "accounts" | "usage" | "tenantUsage">;

/** `stop` counts what still waits. */
export function sqliteSpending(
  file: SmallFile,
  sql: QuotaStatements,
  { now, logger, bounds }: SpendingOptions,
): { readonly store: SpendingStore; stop(): void } {
  const { maxNames, maxUncounted, countMs } = bounds;
  const { read } = file;
  const change = <T>(work: () => T): T => {
    isCounted = false;
    const result = file.write(work);
    // Not before the commit, which may fail as well.
    if (isCounted) uncounted.clear();
    return result;
  };
  /** The day on which what is too old was last thrown away. */
  let cleared = "";
  /** Tenants and users with the month in which they were last counted, oldest first. Empty when all of them are kept. */
  const names = new Map<string, string>();
  /** Spending that is not in the tables yet, by all that its rows are found by. */
  const uncounted = new Map<string, Uncounted>();
  /** Whether the change in progress has put all of it into the tables. */
  let isCounted = false;
  let timer: NodeJS.Timeout | undefined;

  const store: SpendingStore = {
    async reserve(owner, { id, amounts, ms }, budgets) {
      const { tenant, user } = namesOf(owner);
      return change(() => {
        const before = accountsOf(owner);
        sql.shortenReserved.run(now() + ms);
        if (!hasRoom(before, budgets, amounts)) return { isGranted: false, accounts: before };
        sql.reserve.run(id, tenant, user, amounts.tokens, amounts.cost, now() + ms);
        return { isGranted: true, accounts: withReserved(before, amounts) };
      });
    },

    async extend(_, ids, ms) {
      change(() => {
        for (const id of ids) sql.extendReserved.run(now() + ms, id, now());
      });
    },

    async settle(owner, id, spending) {
      const isReserved = read(() => sql.findReserved.get(id)) !== undefined;
      const forget = spending && remembered(owner, spending);
      const isFull = uncounted.size > maxUncounted;
      try {
        if (isReserved || isFull)
          change(() => {
            sql.unreserve.run(id);
            // What was reserved is counted as soon as it is not reserved any more.
            if (isFull || countMs !== undefined) countAll();
          });
      } catch (error) {
        // Kept, it would be counted twice when the caller asks again, and be more and more while the file is broken.
        forget?.();
        throw error;
      }
      if (uncounted.size > 0 && countMs !== undefined) timer ??= setTimeout(countSoon, countMs).unref();
    },

    accounts: async (owner) => change(() => accountsOf(owner)),

    async usage(owner, days) {
      const rows = change(() => {
        countAll();
        return sql.usage.all(namesOf(owner).user, firstDay(now(), days));
      });
      return sortedRows(rows.map(usedIn));
    },

    async tenantUsage(tenant, days) {
      return change(() => {
        countAll();
        const [name, first] = [tenantText(tenant), firstDay(now(), days)];
        const users = sql.usageByUser
          .all(name, first)
          .map(usedIn)
          .map(({ user, ...used }) => (user === REST ? used : { ...used, user: JSON.parse(user) as string }));
        const rows = sql.usage.all(name, first).map(usedIn);
        return { rows: sortedRows(rows), users: dearestUsers(users) };
      });
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

  function accountsOf(owner: Owner): Accounts {
    countAll();
    sql.endReserved.run(now());
    const [day, month] = [dayOf(now()), monthOf(now())];
    const { tenant, user } = namesOf(owner);
    const account = (name: string, reserved: Sum | undefined): Account => ({
      day: amountsOf(sql.spent.get(name, day)),
      month: amountsOf(sql.spent.get(name, month)),
      reserved: amountsOf(reserved),
    });
    return {
      now: now(),
      tenant: account(tenant, sql.reservedByTenant.get(tenant)),
      user: account(user, sql.reservedByUser.get(user)),
    };
  }

  /** Within a change. */
  function countAll(): void {
    if (uncounted.size === 0 || isCounted) return;
    for (const spending of uncounted.values()) {
      const { owner, day, sum } = spending;
      const { tenant, user } = namesOf(owner);
      const month = monthOf(Date.parse(day));
      const spent = [tokensOf(sum.usage), sum.cost];
      sql.spend.run(...[tenant, user].flatMap((name) => [name, day, ...spent, name, month, ...spent]));
      for (const name of [tenant, user]) count(name, day, sum);
      countUser(tenant, JSON.stringify(owner.user), spending);
      for (const name of [tenant, user]) remember(name, month);
    }
    isCounted = true;
    clear();
  }

  function count(name: string, day: string, sum: SumOfCalls): void {
    const { agent, model } = sum;
    if (sql.countMore.run(...numbersOf(sum), name, day, agent, model) > 0) return;
    const isOwn = hasOwnRow(false, sql.rows.get(name, day)?.n ?? 0, MAX_ROWS);
    const row = isOwn ? [agent, model] : [OTHER, OTHER];
    sql.count.run(name, day, ...row, ...numbersOf(sum));
  }

  function countUser(tenant: string, user: string, { day, sum }: Uncounted): void {
    if (sql.countMoreOfUser.run(...numbersOf(sum), tenant, day, user) > 0) return;
    const isOwn = hasOwnRow(false, sql.users.get(tenant, day)?.n ?? 0, MAX_USERS);
    sql.countUser.run(tenant, day, isOwn ? user : REST, ...numbersOf(sum));
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
    const least = sql.leastSpent.all(month, name, Math.ceil(maxNames / FORGOTTEN_PART));
    for (const each of least) forget(each.name);
  }

  function forget(name: string): void {
    names.delete(name);
    sql.forgetSpentBy.run(name);
    sql.forgetUsageOf.run(name);
    sql.forgetUsersOf.run(name);
  }

  /** Once a day. */
  function clear(): void {
    const today = dayOf(now());
    if (cleared === today) return;
    cleared = today;
    const first = firstKeptDay(now());
    sql.forgetUsage.run(first);
    sql.forgetUsers.run(first);
    sql.forgetSpent.run(monthOf(now()));
  }
}

/** A hundredth of the names is forgotten at once. */
const FORGOTTEN_PART = 100;

/** Under it the table of users has those without a row. No user is called that. */
const REST = "";

/** What several calls have spent that are counted in the same rows. */
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

const amountsOf = (row: Sum | undefined): Amounts => ({ tokens: row?.tokens ?? 0, cost: row?.cost ?? 0 });
