// Quotas in a file of their own, `usage.db`. What was used survives the death of the process; that of the machine may
// cost the last moments. The rate of requests is the process's own.

import { join } from "node:path";
import type { Owner } from "../../core/ids.ts";
import {
  type Account,
  type Accounts,
  type Amounts,
  dayOf,
  firstDay,
  hasRoom,
  MAX_ROWS,
  monthOf,
  OTHER,
  type QuotaStore,
  RESOURCES,
  SCOPES,
  type Spending,
  sortedRows,
  tokensOf,
  USAGE_DAYS,
  type UsageRow,
} from "../../quotas/store.ts";
import { namesOf } from "../quota-names.ts";
import { requestRate } from "../request-rate.ts";
import { openSmallFile, type SmallFile } from "./small-file.ts";

/**
 * `tenant` and `user` are the JSON of [tenant] and [tenant, user], `name` is either; `period` is a day or a month.
 * Times are ms since 1970, cost is in millionths.
 */
const SCHEMA = `
CREATE TABLE held (
  thing TEXT NOT NULL, user TEXT NOT NULL, id TEXT NOT NULL, tenant TEXT NOT NULL, ends INTEGER NOT NULL,
  PRIMARY KEY (thing, user, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX held_by_tenant ON held (thing, tenant);
CREATE INDEX held_by_end ON held (ends);
CREATE TABLE reserved (
  id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL,
  tokens INTEGER NOT NULL, cost INTEGER NOT NULL, ends INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE spent (
  name TEXT NOT NULL, period TEXT NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
  PRIMARY KEY (name, period)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
  user TEXT NOT NULL, day TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
  PRIMARY KEY (user, day, agent, model)
) STRICT, WITHOUT ROWID;
`;

/** `stored` is by thread; the triggers keep `stored_sums` what its rows add up to, by tenant and by user. */
const STORED = `
CREATE TABLE stored (
  user TEXT NOT NULL, id TEXT NOT NULL, tenant TEXT NOT NULL, bytes INTEGER NOT NULL, ends INTEGER NOT NULL,
  PRIMARY KEY (user, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX stored_by_end ON stored (ends);
CREATE TABLE stored_sums (name TEXT NOT NULL PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TRIGGER stored_added AFTER INSERT ON stored BEGIN
  INSERT INTO stored_sums VALUES (new.tenant, new.bytes), (new.user, new.bytes)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_changed AFTER UPDATE OF bytes ON stored BEGIN
  UPDATE stored_sums SET bytes = bytes + new.bytes - old.bytes WHERE name IN (new.tenant, new.user);
END;
CREATE TRIGGER stored_dropped AFTER DELETE ON stored BEGIN
  UPDATE stored_sums SET bytes = bytes - old.bytes WHERE name IN (old.tenant, old.user);
  DELETE FROM stored_sums WHERE bytes = 0 AND name IN (old.tenant, old.user);
END;
`;

export interface OpenQuotas {
  readonly quotas: QuotaStore;
  close(): void;
}

/** Makes the file when there is none. Throws `unavailable` when it cannot be used, as does all that is asked later. */
export function openSqliteQuotas(dataDir: string, now: () => number = Date.now): OpenQuotas {
  return openQuotas(join(dataDir, "usage.db"), now, Number.POSITIVE_INFINITY);
}

/**
 * Lost when it is closed. Of more than `maxNames` tenants and users it forgets some: first those that were last counted
 * before this month, then those that have spent least in it.
 */
export const openMemoryQuotas = (now: () => number = Date.now, maxNames = 100_000): OpenQuotas =>
  openQuotas(":memory:", now, maxNames);

function openQuotas(path: string, now: () => number, maxNames: number): OpenQuotas {
  const pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL";
  const file = openSmallFile({ path, content: "The usage", pragmas, steps: [SCHEMA, STORED] });
  return { quotas: quotasIn(file, now, maxNames), close: file.close };
}

function quotasIn(file: SmallFile, now: () => number, maxNames: number): QuotaStore {
  const { read } = file;
  const change = <T>(work: () => T) => file.write("fast", work);
  const sql = statements(file);
  const take = requestRate(now);
  /** The day on which what is too old was last thrown away. */
  let cleared = "";
  /** Tenants and users with the month in which they were last counted, oldest first. Empty when all of them are kept. */
  const names = new Map<string, string>();

  return {
    take: async (owner, perMinute) => read(() => take(owner, perMinute)),

    async hold(owner, { thing, id, ms }, most) {
      const { tenant, user } = namesOf(owner);
      return change(() => {
        sql.endHeld.run(now());
        const isNew = !sql.findHeld.get(thing, user, id);
        const count = { tenant: sql.heldByTenant.get(thing, tenant), user: sql.heldByUser.get(thing, user) };
        const full = SCOPES.find((level) => Number(count[level]?.n) >= (most[level] ?? Infinity));
        if (isNew && full) return full;
        sql.hold.run(thing, user, id, tenant, now() + ms);
        return isNew ? "new" : "kept";
      });
    },

    async release(owner, thing, id) {
      change(() => sql.release.run(thing, namesOf(owner).user, id));
    },

    async setStored(owner, { id, bytes, ms }, most) {
      const { tenant, user } = namesOf(owner);
      const names = { tenant, user };
      return change(() => {
        sql.endStored.run(now());
        const more = bytes - (sql.findStored.get(user, id)?.bytes ?? 0);
        const sum = (level: "tenant" | "user") => sql.storedSum.get(names[level])?.bytes ?? 0;
        const full = SCOPES.find((level) => more > 0 && sum(level) + more > (most[level] ?? Infinity));
        if (full) return full;
        if (bytes > 0) sql.store.run(user, id, tenant, bytes, now() + ms);
        else sql.dropStored.run(user, id);
        return undefined;
      });
    },

    async stored(owner) {
      const { tenant, user } = namesOf(owner);
      return change(() => {
        sql.endStored.run(now());
        return { tenant: sql.storedSum.get(tenant)?.bytes ?? 0, user: sql.storedSum.get(user)?.bytes ?? 0 };
      });
    },

    async held(owner) {
      const { tenant, user } = namesOf(owner);
      return change(() => {
        sql.endHeld.run(now());
        const [runs, streams, threads] = RESOURCES.map((thing) => ({
          tenant: Number(sql.heldByTenant.get(thing, tenant)?.n),
          user: Number(sql.heldByUser.get(thing, user)?.n),
        }));
        const at = (level: "tenant" | "user") => ({
          runs: runs?.[level] ?? 0,
          streams: streams?.[level] ?? 0,
          threads: threads?.[level] ?? 0,
        });
        return { tenant: at("tenant"), user: at("user") };
      });
    },

    async reserve(owner, { id, amounts, ms }, budgets) {
      const { tenant, user } = namesOf(owner);
      return change(() => {
        const before = accountsOf(owner);
        const isGranted = SCOPES.every((level) => hasRoom(before[level], budgets[level], amounts));
        if (isGranted) sql.reserve.run(id, tenant, user, amounts.tokens, amounts.cost, now() + ms);
        return { isGranted, accounts: isGranted ? accountsOf(owner) : before };
      });
    },

    async settle(owner, id, spending) {
      change(() => {
        sql.unreserve.run(id);
        if (!spending) return;
        clear();
        const [day, month] = [dayOf(now()), monthOf(now())];
        const { tenant, user } = namesOf(owner);
        for (const name of [tenant, user])
          for (const period of [day, month])
            sql.spend.run(name, period, tokensOf(spending.usage), spending.cost);
        count(user, day, spending);
        for (const name of [tenant, user]) remember(name, month);
      });
    },

    accounts: async (owner) => change(() => accountsOf(owner)),

    async usage(owner, days) {
      const rows = read(() => sql.usage.all(namesOf(owner).user, firstDay(now(), days)));
      return sortedRows(rows.map((row) => ({ ...row })));
    },
  };

  function accountsOf(owner: Owner): Accounts {
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

  function count(user: string, day: string, { agent, model, usage, cost }: Spending): void {
    const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = usage;
    const isKnown = sql.findRow.get(user, day, agent, model) !== undefined;
    const isFull = !isKnown && Number(sql.rows.get(user, day)?.n) >= MAX_ROWS;
    const names = isFull ? [OTHER, OTHER] : [agent, model];
    const tokens = [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens];
    sql.count.run(user, day, ...names, ...tokens, cost);
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
  }

  /** Once a day. */
  function clear(): void {
    const today = dayOf(now());
    if (cleared === today) return;
    cleared = today;
    sql.forgetUsage.run(firstDay(now(), USAGE_DAYS));
    sql.forgetSpent.run(monthOf(now()));
  }
}

/** A hundredth of the names is forgotten at once. */
const FORGOTTEN_PART = 100;

interface Count {
  readonly n: number;
}
interface Bytes {
  readonly bytes: number;
}
/** Of no rows: null. */
interface Sum {
  readonly tokens: number | null;
  readonly cost: number | null;
}

function statements(file: SmallFile) {
  const by = (column: "tenant" | "user") => ({
    held: file.query<Count>(`SELECT count(*) AS n FROM held WHERE thing = ? AND ${column} = ?`),
    reserved: file.query<Sum>(
      `SELECT sum(tokens) AS tokens, sum(cost) AS cost FROM reserved WHERE ${column} = ?`,
    ),
  });
  const [tenant, user] = [by("tenant"), by("user")];
  return {
    heldByTenant: tenant.held,
    heldByUser: user.held,
    reservedByTenant: tenant.reserved,
    reservedByUser: user.reserved,
    endHeld: file.query("DELETE FROM held WHERE ends <= ?"),
    findHeld: file.query("SELECT 1 FROM held WHERE thing = ? AND user = ? AND id = ?"),
    hold: file.query(`
      INSERT INTO held (thing, user, id, tenant, ends) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET ends = excluded.ends`),
    release: file.query("DELETE FROM held WHERE thing = ? AND user = ? AND id = ?"),
    endStored: file.query("DELETE FROM stored WHERE ends <= ?"),
    findStored: file.query<Bytes>("SELECT bytes FROM stored WHERE user = ? AND id = ?"),
    storedSum: file.query<Bytes>("SELECT bytes FROM stored_sums WHERE name = ?"),
    store: file.query(`
      INSERT INTO stored (user, id, tenant, bytes, ends) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET bytes = excluded.bytes, ends = excluded.ends`),
    dropStored: file.query("DELETE FROM stored WHERE user = ? AND id = ?"),
    endReserved: file.query("DELETE FROM reserved WHERE ends <= ?"),
    reserve: file.query(
      "INSERT INTO reserved (id, tenant, user, tokens, cost, ends) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    unreserve: file.query("DELETE FROM reserved WHERE id = ?"),
    spent: file.query<Sum>("SELECT tokens, cost FROM spent WHERE name = ? AND period = ?"),
    spend: file.query(`
      INSERT INTO spent (name, period, tokens, cost) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost`),
    // A month comes before all of its days.
    forgetSpent: file.query("DELETE FROM spent WHERE period < ?"),
    forgetSpentBy: file.query("DELETE FROM spent WHERE name = ?"),
    forgetUsageOf: file.query("DELETE FROM usage WHERE user = ?"),
    leastSpent: file.query<{ readonly name: string }>(
      "SELECT name FROM spent WHERE period = ? AND name <> ? ORDER BY tokens, cost LIMIT ?",
    ),
    findRow: file.query("SELECT 1 FROM usage WHERE user = ? AND day = ? AND agent = ? AND model = ?"),
    rows: file.query<Count>("SELECT count(*) AS n FROM usage WHERE user = ? AND day = ?"),
    count: file.query(`
      INSERT INTO usage VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET calls = calls + 1, cost = cost + excluded.cost,
        input_tokens = input_tokens + excluded.input_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
        cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens`),
    usage: file.query<UsageRow>(`
      SELECT day, agent, model, calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost
      FROM usage WHERE user = ? AND day >= ?`),
    forgetUsage: file.query("DELETE FROM usage WHERE day < ?"),
  };
}

const amountsOf = (row: Sum | undefined): Amounts => ({ tokens: row?.tokens ?? 0, cost: row?.cost ?? 0 });
