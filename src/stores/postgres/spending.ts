// What was used and what is reserved, in tables: the accounts that budgets are compared with, and the reports of them.

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
  type UsageRow,
  type Used,
} from "../../quotas/store.ts";
import { namesOf, tenantText } from "../row-keys.ts";
import { type Marked, usedIn } from "../usage-rows.ts";
import { type Ask, type Database, type Transaction, timeOf } from "./database.ts";

/** Under it the table of users has those without a row. No user is called that. */
const REST = "";

const NUMBERS = "calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost";
const SUMS = NUMBERS.split(", ")
  .map((name) => `sum(${name})::bigint AS ${name}`)
  .concat("bool_or(estimated) AS estimated")
  .join(", ");
const addedTo = (table: string) =>
  `calls = ${table}.calls + 1, ${NUMBERS.split(", ")
    .slice(1)
    .map((name) => `${name} = ${table}.${name} + excluded.${name}`)
    .join(", ")}, estimated = ${table}.estimated OR excluded.estimated`;

interface Sum {
  readonly name: string;
  readonly tokens: number;
  readonly cost: number;
}

interface AccountsRow {
  readonly now: number;
  readonly spent: readonly (Sum & { readonly period: string })[];
  readonly reserved: readonly Sum[];
}

const NO_ACCOUNTS: AccountsRow = { now: 0, spent: [], reserved: [] };

/** All at one moment: what a call had reserved is not missed, nor counted twice, while it is settled. */
const ACCOUNTS = `
  SELECT ${timeOf(4)} AS now,
    (SELECT coalesce(json_agg(spent), '[]') FROM spent WHERE name = ANY ($1) AND period = ANY ($2)) AS spent,
    (SELECT coalesce(json_agg(sums), '[]') FROM (
      SELECT name, sum(tokens) AS tokens, sum(cost) AS cost FROM reserved, unnest(ARRAY[tenant, owner]) AS name
      WHERE tenant = $3 AND ends > ${timeOf(4)} AND name = ANY ($1) GROUP BY name) AS sums) AS reserved`;

type SpendingStore = Pick<QuotaStore, "reserve" | "extend" | "settle" | "accounts" | "usage" | "tenantUsage">;

export function postgresSpending(database: Database): SpendingStore {
  const change = <T>(owner: Owner, work: (tx: Transaction) => Promise<T>) =>
    changeQuotas(database, owner, work);
  /** The day on which what is too old was last thrown away. */
  let cleared = "";

  return {
    async reserve(owner, { id, amounts, ms }, budgets) {
      const { tenant, user } = namesOf(owner);
      return change(owner, async (tx) => {
        const before = await accountsOf(tx.rows, owner);
        tx.write("UPDATE reserved SET ends = $2 WHERE tenant = $1 AND ends > $2", [tenant, before.now + ms]);
        if (!hasRoom(before, budgets, amounts)) return { isGranted: false, accounts: before };
        tx.write("DELETE FROM reserved WHERE tenant = $1 AND ends <= $2", [tenant, before.now]);
        tx.write(
          "INSERT INTO reserved (id, tenant, owner, tokens, cost, ends) VALUES ($1, $2, $3, $4, $5, $6)",
          [id, tenant, user, amounts.tokens, amounts.cost, before.now + ms],
        );
        return { isGranted: true, accounts: withReserved(before, amounts) };
      });
    },

    async extend(tenant, ids, ms) {
      await database.query(
        `UPDATE reserved SET ends = ${timeOf(3)} + $4::bigint
        WHERE tenant = $1 AND id = ANY ($2) AND ends > ${timeOf(3)}`,
        [tenantText(tenant), ids, database.clock(), ms],
      );
    },

    async settle(owner, id, spending) {
      const today = await database.deadlines.inRun(() =>
        change(owner, async (tx) => {
          tx.write("DELETE FROM reserved WHERE id = $1", [id]);
          if (!spending) return cleared;
          const now = await timeIn(database, tx);
          if (cleared !== dayOf(now)) clear(tx, now);
          await count(tx, owner, { spending, now });
          return dayOf(now);
        }),
      );
      // Not before the commit: a transaction may begin again.
      cleared = today;
    },

    accounts: (owner) => accountsOf((sql, values) => database.query(sql, values), owner),

    async usage(owner, days) {
      return sortedRows(await usageRows(namesOf(owner).user, firstDay(await time(), days)));
    },

    async tenantUsage(tenant, days) {
      const [name, first] = [tenantText(tenant), firstDay(await time(), days)];
      const users = await database.query<Marked<Used> & { user: string }>(
        `SELECT "user", ${SUMS} FROM usage_of_users WHERE tenant = $1 AND day >= $2 GROUP BY "user"`,
        [name, first],
      );
      const named = users
        .map(usedIn)
        .map(({ user, ...used }) => (user === REST ? used : { ...used, user: JSON.parse(user) as string }));
      return { rows: sortedRows(await usageRows(name, first)), users: dearestUsers(named) };
    },
  };

  async function time(): Promise<number> {
    const [row] = await database.query<{ now: number }>(`SELECT ${timeOf(1)} AS now`, [database.clock()]);
    return row?.now ?? 0;
  }

  /** Asks with the day of this process's clock; once more when PostgreSQL has another. */
  async function accountsOf(ask: Ask, owner: Owner): Promise<Accounts> {
    const { tenant, user } = namesOf(owner);
    for (let time = database.clock() ?? Date.now(); ; ) {
      const [day, month] = [dayOf(time), monthOf(time)];
      const asked = [[tenant, user], [day, month], tenant, database.clock()];
      const [{ now, spent, reserved } = NO_ACCOUNTS] = await ask<AccountsRow>(ACCOUNTS, asked);
      if (dayOf(now) === day) {
        const account = (name: string): Account => ({
          day: amountsOf(spent.find((row) => row.name === name && row.period === day)),
          month: amountsOf(spent.find((row) => row.name === name && row.period === month)),
          reserved: amountsOf(reserved.find((row) => row.name === name)),
        });
        return { now, tenant: account(tenant), user: account(user) };
      }
      time = now;
    }
  }

  async function count(
    tx: Transaction,
    owner: Owner,
    { spending, now }: { spending: Spending; now: number },
  ): Promise<void> {
    const { tenant, user } = namesOf(owner);
    const [day, month] = [dayOf(now), monthOf(now)];
    const names = [tenant, user];
    const rows = tx.rows<{ name: string; n: number; known: boolean }>(
      `SELECT name, count(*) AS n, coalesce(bool_or(agent = $3 AND model = $4), false) AS known FROM usage
      WHERE name = ANY ($1) AND day = $2 GROUP BY name`,
      [names, day, spending.agent, spending.model],
    );
    const users = tx.rows<{ n: number; known: boolean }>(
      `SELECT count(*) AS n, coalesce(bool_or("user" = $3), false) AS known FROM usage_of_users WHERE tenant = $1 AND day = $2`,
      [tenant, day, JSON.stringify(owner.user)],
    );
    tx.write(
      `INSERT INTO spent SELECT name, period, $3, $4 FROM unnest($1::text[]) AS name, unnest($2::text[]) AS period
      ON CONFLICT (name, period) DO UPDATE SET tokens = spent.tokens + excluded.tokens, cost = spent.cost + excluded.cost`,
      [names, [day, month], tokensOf(spending.usage), spending.cost],
    );
    const numbers = numbersOf(spending);
    const counted = await rows;
    for (const name of names) {
      const found = counted.find((row) => row.name === name);
      const isOwn = hasOwnRow(found?.known ?? false, found?.n ?? 0, MAX_ROWS);
      const row = isOwn ? [spending.agent, spending.model] : [OTHER, OTHER];
      tx.write(
        `INSERT INTO usage VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $8, $9, $10)
        ON CONFLICT (name, day, agent, model) DO UPDATE SET ${addedTo("usage")}`,
        [name, day, ...row, ...numbers],
      );
    }
    const [known] = await users;
    const isOwn = hasOwnRow(known?.known ?? false, known?.n ?? 0, MAX_USERS);
    tx.write(
      `INSERT INTO usage_of_users VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9)
      ON CONFLICT (tenant, day, "user") DO UPDATE SET ${addedTo("usage_of_users")}`,
      [tenant, day, isOwn ? JSON.stringify(owner.user) : REST, ...numbers],
    );
  }

  function clear(tx: Transaction, now: number): void {
    const first = firstKeptDay(now);
    for (const table of ["usage", "usage_of_users"]) tx.write(`DELETE FROM ${table} WHERE day < $1`, [first]);
    // A month comes before all of its days.
    tx.write("DELETE FROM spent WHERE period < $1", [monthOf(now)]);
    tx.write("DELETE FROM rates WHERE ends <= $1", [now]);
    tx.write("DELETE FROM held WHERE ends <= $1", [now]);
  }

  async function usageRows(name: string, first: string): Promise<UsageRow[]> {
    const rows = await database.query<Marked<UsageRow>>(
      `SELECT day, agent, model, ${NUMBERS}, estimated FROM usage WHERE name = $1 AND day >= $2`,
      [name, first],
    );
    return rows.map(usedIn);
  }
}

function numbersOf({ usage, cost }: Spending): (number | boolean)[] {
  const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, estimated = false } = usage;
  return [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost, estimated];
}

const amountsOf = (row: Sum | undefined): Amounts => ({ tokens: row?.tokens ?? 0, cost: row?.cost ?? 0 });

/** Changes what concerns one tenant, one at a time. Over before it is on the disk: see quotas.ts for what that may cost. */
export function changeQuotas<T>(
  database: Database,
  owner: Owner,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  return database.transaction(["quotas", owner.tenant], (tx) => {
    void tx.rows("SET LOCAL synchronous_commit = off");
    return work(tx);
  });
}

/** The database's time. */
export function timeIn(database: Database, tx: Transaction): Promise<number> {
  const time = tx
    .rows<{ now: number }>(`SELECT ${timeOf(1)} AS now`, [database.clock()])
    .then(([row]) => row?.now ?? 0);
  // It is awaited after others, which fail with it.
  time.catch(() => {});
  return time;
}
