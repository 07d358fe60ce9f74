// Quotas in tables, for all processes that use them. What concerns a tenant is changed by one at a time. What was used
// survives the death of any process; that of PostgreSQL's machine may cost the last moments.

import type { Owner } from "../../core/ids.ts";
import {
  type Account,
  type Accounts,
  type Amounts,
  dayOf,
  dearestUsers,
  firstDay,
  hasRoom,
  MAX_ROWS,
  MAX_USERS,
  monthOf,
  OTHER,
  type PerScope,
  type QuotaStore,
  RESOURCES,
  type Resource,
  SCOPES,
  type Spending,
  sortedRows,
  tokensOf,
  USAGE_DAYS,
  type UsageRow,
  type Used,
} from "../../quotas/store.ts";
import { namesOf } from "../quota-names.ts";
import { type Database, type Transaction, timeOf } from "./database.ts";

const MINUTE_MS = 60_000;
/** Under it the table of users has those without a row. No user is called that. */
const REST = "";

const NUMBERS = "calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost";
const SUMS = NUMBERS.split(", ")
  .map((name) => `sum(${name})::bigint AS ${name}`)
  .join(", ");
const addedTo = (table: string) =>
  `calls = ${table}.calls + 1, ${NUMBERS.split(", ")
    .slice(1)
    .map((name) => `${name} = ${table}.${name} + excluded.${name}`)
    .join(", ")}`;

interface Sum {
  readonly name: string;
  readonly tokens: number;
  readonly cost: number;
}

export function postgresQuotas(database: Database): QuotaStore {
  /** The day on which what is too old was last thrown away. */
  let cleared = "";

  return {
    async take(owner, perMinute) {
      const names = namesOf(owner);
      const levels = SCOPES.filter((level) => perMinute[level] !== undefined);
      if (levels.length === 0) return undefined;
      return change(owner, async (tx) => {
        const time = timeIn(tx);
        const rows = await tx.rows<{ name: string; ends: number }>(
          "SELECT name, ends FROM rates WHERE name = ANY ($1)",
          [levels.map((level) => names[level])],
        );
        const now = await time;
        const ends = new Map(rows.map((row) => [row.name, row.ends]));
        const next = levels.map((level) => {
          const end = Math.max(ends.get(names[level]) ?? 0, now) + MINUTE_MS / (perMinute[level] ?? 1);
          return { level, end, wait: end - MINUTE_MS - now };
        });
        // A hundredth of a millisecond: sums of fractions are not exact.
        const full = next.filter(({ wait }) => wait > 0.01).toSorted((a, b) => b.wait - a.wait)[0];
        if (full) return { full: full.level, wait_ms: Math.ceil(full.wait) };
        tx.write(
          `INSERT INTO rates SELECT * FROM unnest($1::text[], $2::float8[])
          ON CONFLICT (name) DO UPDATE SET ends = excluded.ends`,
          [next.map(({ level }) => names[level]), next.map(({ end }) => end)],
        );
        return undefined;
      });
    },

    async hold(owner, { thing, id, ms }, most) {
      const { tenant, user } = namesOf(owner);
      return change(owner, async (tx) => {
        const time = timeIn(tx);
        const known = tx.rows(
          `SELECT 1 FROM held WHERE thing = $1 AND owner = $2 AND id = $3 AND ends > ${timeOf(4)}`,
          [...[thing, user, id, database.clock()]],
        );
        const counts = await countHeld(tx, owner);
        const isNew = (await known).length === 0;
        const full = SCOPES.find(
          (level) => counts[level][thing] >= (most[level] ?? Number.POSITIVE_INFINITY),
        );
        if (isNew && full) return full;
        tx.write(
          `INSERT INTO held (thing, owner, id, tenant, ends) VALUES ($1, $2, $3, $4, $5)
          ON CONFLICT (thing, owner, id) DO UPDATE SET ends = excluded.ends`,
          [thing, user, id, tenant, (await time) + ms],
        );
        tx.write("DELETE FROM held WHERE tenant = $1 AND ends <= $2", [tenant, await time]);
        return isNew ? "new" : "kept";
      });
    },

    async release(owner, thing, id) {
      await database.query("DELETE FROM held WHERE thing = $1 AND owner = $2 AND id = $3", [
        ...[thing, namesOf(owner).user, id],
      ]);
    },

    async setStored(owner, { id, bytes, ms }, most) {
      const { tenant, user } = namesOf(owner);
      return change(owner, async (tx) => {
        endStored(tx, tenant);
        const time = timeIn(tx);
        const before = tx.rows<{ bytes: number }>("SELECT bytes FROM stored WHERE owner = $1 AND id = $2", [
          user,
          id,
        ]);
        const sums = await storedSums(tx, owner);
        const more = bytes - ((await before)[0]?.bytes ?? 0);
        const isFull = (level: "tenant" | "user") =>
          sums[level] + more > (most[level] ?? Number.POSITIVE_INFINITY);
        const full = more > 0 ? SCOPES.find(isFull) : undefined;
        if (full) return full;
        if (bytes > 0)
          tx.write(
            `INSERT INTO stored (owner, id, tenant, bytes, ends) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (owner, id) DO UPDATE SET bytes = excluded.bytes, ends = excluded.ends`,
            [user, id, tenant, bytes, (await time) + ms],
          );
        else tx.write("DELETE FROM stored WHERE owner = $1 AND id = $2", [user, id]);
        tx.write(
          `INSERT INTO stored_sums SELECT name, $2::bigint FROM unnest($1::text[]) AS name
          ON CONFLICT (name) DO UPDATE SET bytes = stored_sums.bytes + excluded.bytes`,
          [[tenant, user], more],
        );
        return undefined;
      });
    },

    stored: (owner) =>
      change(owner, async (tx) => {
        endStored(tx, namesOf(owner).tenant);
        return storedSums(tx, owner);
      }),

    held: (owner) => change(owner, (tx) => countHeld(tx, owner)),

    async reserve(owner, { id, amounts, ms }, budgets) {
      const { tenant, user } = namesOf(owner);
      return change(owner, async (tx) => {
        const before = await accountsOf(tx, owner);
        const isGranted = SCOPES.every((level) => hasRoom(before[level], budgets[level], amounts));
        if (!isGranted) return { isGranted, accounts: before };
        tx.write("DELETE FROM reserved WHERE tenant = $1 AND ends <= $2", [tenant, before.now]);
        tx.write(
          "INSERT INTO reserved (id, tenant, owner, tokens, cost, ends) VALUES ($1, $2, $3, $4, $5, $6)",
          [...[id, tenant, user, amounts.tokens, amounts.cost, before.now + ms]],
        );
        const { tokens, cost } = amounts;
        const withIt = ({ reserved, ...rest }: Account): Account => ({
          ...rest,
          reserved: { tokens: reserved.tokens + tokens, cost: reserved.cost + cost },
        });
        return {
          isGranted,
          accounts: { now: before.now, tenant: withIt(before.tenant), user: withIt(before.user) },
        };
      });
    },

    async settle(owner, id, spending) {
      await database.deadlines.inRun(() =>
        change(owner, async (tx) => {
          tx.write("DELETE FROM reserved WHERE id = $1", [id]);
          if (!spending) return;
          const now = await timeIn(tx);
          clear(tx, now);
          await count(tx, owner, { spending, now });
        }),
      );
    },

    accounts: (owner) => change(owner, (tx) => accountsOf(tx, owner)),

    async usage(owner, days) {
      return sortedRows(await usageRows(namesOf(owner).user, firstDay(await time(), days)));
    },

    async tenantUsage(tenant, days) {
      const [name, first] = [JSON.stringify([tenant]), firstDay(await time(), days)];
      const users = await database.query<Used & { user: string }>(
        `SELECT "user", ${SUMS} FROM usage_of_users WHERE tenant = $1 AND day >= $2 GROUP BY "user"`,
        [name, first],
      );
      const named = users.map(({ user, ...used }) =>
        user === REST ? used : { ...used, user: JSON.parse(user) as string },
      );
      return { rows: sortedRows(await usageRows(name, first)), users: dearestUsers(named) };
    },
  };

  function change<T>(owner: Owner, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return database.transaction(["quotas", owner.tenant], (tx) => {
      void tx.rows("SET LOCAL synchronous_commit = off");
      return work(tx);
    });
  }

  async function time(): Promise<number> {
    const [row] = await database.query<{ now: number }>(`SELECT ${timeOf(1)} AS now`, [database.clock()]);
    return row?.now ?? 0;
  }

  function timeIn(tx: Transaction): Promise<number> {
    const time = tx
      .rows<{ now: number }>(`SELECT ${timeOf(1)} AS now`, [database.clock()])
      .then(([row]) => row?.now ?? 0);
    // It is awaited after others, which fail with it.
    time.catch(() => {});
    return time;
  }

  async function countHeld(tx: Transaction, owner: Owner): Promise<PerScope<Record<Resource, number>>> {
    const { tenant, user } = namesOf(owner);
    const rows = await tx.rows<{ thing: Resource; tenant: number; user: number }>(
      `SELECT thing, count(*) AS tenant, count(*) FILTER (WHERE owner = $2) AS user FROM held
      WHERE tenant = $1 AND ends > ${timeOf(3)} GROUP BY thing`,
      [tenant, user, database.clock()],
    );
    const at = (level: "tenant" | "user") => {
      const numbers = RESOURCES.map((thing) => rows.find((row) => row.thing === thing)?.[level] ?? 0);
      const [runs = 0, streams = 0, threads = 0] = numbers;
      return { runs, streams, threads };
    };
    return { tenant: at("tenant"), user: at("user") };
  }

  /** What was stored for its time does not count any more. */
  function endStored(tx: Transaction, tenant: string): void {
    tx.write(
      `WITH gone AS (DELETE FROM stored WHERE tenant = $1 AND ends <= ${timeOf(2)} RETURNING owner, bytes)
      UPDATE stored_sums SET bytes = stored_sums.bytes - less.bytes FROM (
        SELECT name, sum(bytes)::bigint AS bytes
        FROM (SELECT owner AS name, bytes FROM gone UNION ALL SELECT $1, bytes FROM gone) AS parts GROUP BY name) AS less
      WHERE stored_sums.name = less.name`,
      [tenant, database.clock()],
    );
  }

  async function storedSums(tx: Transaction, owner: Owner): Promise<PerScope<number>> {
    const { tenant, user } = namesOf(owner);
    const rows = await tx.rows<{ name: string; bytes: number }>(
      "SELECT name, bytes FROM stored_sums WHERE name = ANY ($1)",
      [[tenant, user]],
    );
    const of = (name: string) => rows.find((row) => row.name === name)?.bytes ?? 0;
    return { tenant: of(tenant), user: of(user) };
  }

  async function accountsOf(tx: Transaction, owner: Owner): Promise<Accounts> {
    const { tenant, user } = namesOf(owner);
    const time = timeIn(tx);
    const reserving = tx.rows<Sum>(
      `SELECT $1 AS name, coalesce(sum(tokens), 0)::bigint AS tokens, coalesce(sum(cost), 0)::bigint AS cost
      FROM reserved WHERE tenant = $1 AND ends > ${timeOf(3)}
      UNION ALL SELECT $2, coalesce(sum(tokens), 0)::bigint, coalesce(sum(cost), 0)::bigint
      FROM reserved WHERE tenant = $1 AND owner = $2 AND ends > ${timeOf(3)}`,
      [tenant, user, database.clock()],
    );
    const now = await time;
    const [day, month] = [dayOf(now), monthOf(now)];
    const spent = await tx.rows<Sum & { period: string }>(
      "SELECT name, period, tokens, cost FROM spent WHERE name = ANY ($1) AND period = ANY ($2)",
      [
        [tenant, user],
        [day, month],
      ],
    );
    const reserved = await reserving;
    const account = (name: string): Account => ({
      day: amountsOf(spent.find((row) => row.name === name && row.period === day)),
      month: amountsOf(spent.find((row) => row.name === name && row.period === month)),
      reserved: amountsOf(reserved.find((row) => row.name === name)),
    });
    return { now, tenant: account(tenant), user: account(user) };
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
      const isFull = found && !found.known && found.n >= MAX_ROWS;
      const row = isFull ? [OTHER, OTHER] : [spending.agent, spending.model];
      tx.write(
        `INSERT INTO usage VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $8, $9)
        ON CONFLICT (name, day, agent, model) DO UPDATE SET ${addedTo("usage")}`,
        [name, day, ...row, ...numbers],
      );
    }
    const [known] = await users;
    const isFull = known && !known.known && known.n >= MAX_USERS;
    tx.write(
      `INSERT INTO usage_of_users VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8)
      ON CONFLICT (tenant, day, "user") DO UPDATE SET ${addedTo("usage_of_users")}`,
      [tenant, day, isFull ? REST : JSON.stringify(owner.user), ...numbers],
    );
  }

  /** Once a day. */
  function clear(tx: Transaction, now: number): void {
    const today = dayOf(now);
    if (cleared === today) return;
    cleared = today;
    const first = firstDay(now, USAGE_DAYS);
    for (const table of ["usage", "usage_of_users"]) tx.write(`DELETE FROM ${table} WHERE day < $1`, [first]);
    // A month comes before all of its days.
    tx.write("DELETE FROM spent WHERE period < $1", [monthOf(now)]);
    tx.write("DELETE FROM rates WHERE ends <= $1", [now]);
    tx.write("DELETE FROM held WHERE ends <= $1", [now]);
  }

  function usageRows(name: string, first: string): Promise<UsageRow[]> {
    return database.query<UsageRow>(
      `SELECT day, agent, model, ${NUMBERS} FROM usage WHERE name = $1 AND day >= $2`,
      [name, first],
    );
  }
}

function numbersOf({ usage, cost }: Spending): number[] {
  const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = usage;
  return [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost];
}

const amountsOf = (row: Sum | undefined): Amounts => ({ tokens: row?.tokens ?? 0, cost: row?.cost ?? 0 });
