// Tables for reserved and used amounts: the accounts that are compared with budgets, and the reports about them.

import type { Owner } from "../../../protocol/ids.ts";
import { dayOf, firstDay, hasRoom, monthOf, withReserved } from "../../quotas/rules.ts";
import {
  type Account,
  type Accounts,
  dearestUsers,
  type SpendingStore,
  sortedRows,
  type UsageRow,
  type UsageTotals,
} from "../../quotas/store.ts";
import { namesOf, tenantText } from "../row-keys.ts";
import { type Marked, usedIn } from "../usage-rows.ts";
import type { SqlDialect } from "./dialect.ts";
import type { Executor, SqlDecision, Statement } from "./executor.ts";

type AccountingStore = Omit<SpendingStore, "settle">;

type ReserveResult = Awaited<ReturnType<SpendingStore["reserve"]>>;

/** The name of the row for all users without their own row. No user can have this name. */
export const REST = "";

/** Reserved amounts have no period. */
interface AmountsRow {
  readonly now: number;
  readonly name: string | null;
  readonly period: string | null;
  readonly tokens: number;
  readonly cost: number;
}

/** `of` returns the executor for changes of a tenant. */
export function sqlAccounting(dialect: SqlDialect, of: (tenant: string) => Executor): AccountingStore {
  const sql = textsOf(dialect);

  return {
    async reserve(owner, { id, amounts, ms }, budgets) {
      const { tenant, user } = namesOf(owner);
      const executor = of(owner.tenant);
      return onTheDay(executor, (day) =>
        executor.change([accountsOf(owner, executor, day)], ([rows]): SqlDecision<ReserveResult | number> => {
          const before = accountsIn(rows, owner, day);
          if (typeof before === "number") return { writes: [], result: before };
          const ends = before.now + ms;
          const shorten: Statement = { sql: sql.shorten, values: [tenant, ends] };
          if (!hasRoom(before, budgets, amounts))
            return { writes: [shorten], result: { isGranted: false, accounts: before } };
          const { tokens, cost } = amounts;
          const writes = [
            shorten,
            { sql: sql.endReserved, values: [tenant, before.now] },
            { sql: sql.reserve, values: [id, tenant, user, tokens, cost, ends] },
          ];
          return { writes, result: { isGranted: true, accounts: withReserved(before, amounts) } };
        }),
      );
    },

    async extend(tenant, ids, ms) {
      const executor = of(tenant);
      const values = [tenantText(tenant), ids, executor.clock(), ms];
      await executor.write({ sql: sql.extend, values });
    },

    accounts(owner) {
      const executor = of(owner.tenant);
      return onTheDay(executor, async (day) =>
        accountsIn(await executor.read(accountsOf(owner, executor, day)), owner, day),
      );
    },

    async usage(owner, days) {
      const executor = of(owner.tenant);
      return usageRows(executor, namesOf(owner).user, firstDay(await timeIn(executor), days));
    },

    async tenantUsage(tenant, days) {
      const executor = of(tenant);
      const [name, first] = [tenantText(tenant), firstDay(await timeIn(executor), days)];
      const users = await executor.read<Marked<UsageTotals> & { user: string }>({
        sql: sql.usageOfUsers,
        values: [name, first],
      });
      const named = users
        .map(usedIn)
        .map(({ user, ...used }) => (user === REST ? used : { ...used, user: JSON.parse(user) as string }));
      return { rows: await usageRows(executor, name, first), users: dearestUsers(named) };
    },
  };

  function accountsOf(owner: Owner, executor: Executor, day: string): Statement<AmountsRow> {
    const { tenant, user } = namesOf(owner);
    const values = [tenant, user, day, monthIn(day), executor.clock()];
    return { sql: sql.accounts, values };
  }

  async function timeIn(executor: Executor): Promise<number> {
    const known = executor.clock();
    if (known !== null) return known;
    const [row] = await executor.read<{ now: number }>({ sql: sql.now, values: [known] });
    return row?.now ?? 0;
  }

  async function usageRows(executor: Executor, name: string, first: string): Promise<UsageRow[]> {
    const rows = await executor.read<Marked<UsageRow>>({ sql: sql.usage, values: [name, first] });
    return sortedRows(rows.map(usedIn));
  }
}

/**
 * Calls `ask` with the current day on this process's clock. If `ask` returns the database's time because its day
 * differs, calls it once more.
 */
export async function onTheDay<T extends object>(
  executor: Executor,
  ask: (day: string) => Promise<T | number>,
): Promise<T> {
  for (let time = executor.clock() ?? Date.now(); ; ) {
    const answer = await ask(dayOf(time));
    if (typeof answer !== "number") return answer;
    time = answer;
  }
}

const monthIn = (day: string) => monthOf(Date.parse(day));

/** Returns the database's time if its day differs. */
function accountsIn(rows: readonly AmountsRow[], owner: Owner, day: string): Accounts | number {
  const now = rows[0]?.now ?? 0;
  if (dayOf(now) !== day) return now;
  const account = (name: string): Account => {
    const amounts = (period: string) => {
      const row = rows.find((each) => each.name === name && each.period === period);
      return { tokens: row?.tokens ?? 0, cost: row?.cost ?? 0 };
    };
    return { day: amounts(day), month: amounts(monthIn(day)), reserved: amounts("") };
  };
  const { tenant, user } = namesOf(owner);
  return { now, tenant: account(tenant), user: account(user) };
}

const NUMBERS = ["calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost"];

function textsOf({ among, time }: SqlDialect) {
  const reserved = (name: string, which: string) => `
    SELECT ${name}, '', CAST(sum(tokens) AS bigint), CAST(sum(cost) AS bigint) FROM reserved
    WHERE ${which} AND ends > ${time(5)} GROUP BY ${name}`;
  const sums = NUMBERS.map((name) => `CAST(sum(${name}) AS bigint) AS ${name}`).join(", ");

  return {
    now: `SELECT ${time(1)} AS now`,
    /**
     * Reads everything at the same moment, so a call's reservation is neither missed nor counted twice while it is
     * settled. Returns at least one row.
     */
    accounts: `
      SELECT now, name, period, tokens, cost FROM (SELECT ${time(5)} AS now) AS moment LEFT JOIN (
        SELECT name, period, tokens, cost FROM spent WHERE name IN ($1, $2) AND period IN ($3, $4)
        UNION ALL ${reserved("tenant", "tenant = $1")}
        UNION ALL ${reserved("owner", "tenant = $1 AND owner = $2")}) AS amounts ON true`,
    shorten: "UPDATE reserved SET ends = $2 WHERE tenant = $1 AND ends > $2",
    endReserved: "DELETE FROM reserved WHERE tenant = $1 AND ends <= $2",
    reserve: "INSERT INTO reserved (id, tenant, owner, tokens, cost, ends) VALUES ($1, $2, $3, $4, $5, $6)",
    extend: `
      UPDATE reserved SET ends = ${time(3)} + CAST($4 AS bigint)
      WHERE tenant = $1 AND ${among("id", 2)} AND ends > ${time(3)}`,
    usage: `SELECT day, agent, model, ${NUMBERS.join(", ")}, estimated FROM usage WHERE name = $1 AND day >= $2`,
    usageOfUsers: `
      SELECT "user", ${sums}, max(CASE WHEN estimated THEN 1 ELSE 0 END) AS estimated
      FROM usage_of_users WHERE tenant = $1 AND day >= $2 GROUP BY "user"`,
  };
}

/** Statements that count the spending of calls. The values are the columns in the order of the table. */
export const COUNTING = {
  unreserve: "DELETE FROM reserved WHERE id = $1",
  /** Adds to a name's day or month. */
  spend: `
    INSERT INTO spent (name, period, tokens, cost) VALUES ($1, $2, $3, $4)
    ON CONFLICT (name, period) DO UPDATE SET tokens = spent.tokens + excluded.tokens, cost = spent.cost + excluded.cost`,
  count: addingTo("usage", ["name", "day", "agent", "model"]),
  countUser: addingTo("usage_of_users", ["tenant", "day", '"user"']),
  /** Deletes days before $1. */
  forgetUsage: "DELETE FROM usage WHERE day < $1",
  forgetUsers: "DELETE FROM usage_of_users WHERE day < $1",
  // A month sorts before all of its days.
  forgetSpent: "DELETE FROM spent WHERE period < $1",
  forgetHeld: "DELETE FROM held WHERE ends <= $1",
};

function addingTo(table: string, key: readonly string[]): string {
  const columns = [...key, ...NUMBERS, "estimated"];
  const added = NUMBERS.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(", ");
  return `
    INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map((_, at) => `$${at + 1}`).join(", ")})
    ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${added}, estimated = ${table}.estimated OR excluded.estimated`;
}
