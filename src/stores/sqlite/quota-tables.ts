// The tables of `usage.db`, and what is asked of them.

import type { UsageRow, Used } from "../../quotas/store.ts";
import type { Marked } from "../usage-rows.ts";
import type { SmallFile } from "./small-file.ts";

/**
 * `tenant` and `user` are the JSON of [tenant] and [tenant, user], `name` is either; `period` is a day or a month.
 * Times are ms since 1970, cost is in millionths.
 *
 * `stored` is by thread; the triggers keep `stored_sums` what its rows add up to, by tenant and by user.
 *
 * `users` has what each user of a tenant used on a day, and under the name '' what those used who have no row. In `usage`
 * a tenant has rows as well, under its name in place of a user's. `estimated` is 1 where some of the numbers of a row are estimates.
 */
export const QUOTA_TABLES = `
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
  estimated INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (user, day, agent, model)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE users (
  tenant TEXT NOT NULL, day TEXT NOT NULL, user TEXT NOT NULL, calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
  estimated INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, day, user)
) STRICT, WITHOUT ROWID;
`;

interface Count {
  readonly n: number;
}
interface Bytes {
  readonly bytes: number;
}
/** Of no rows: null. */
export interface Sum {
  readonly tokens: number | null;
  readonly cost: number | null;
}

const ADDED = `
  ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, cost = cost + excluded.cost,
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
    cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
    estimated = max(estimated, excluded.estimated)`;

/** Takes the numbers in the order of their columns. */
const MORE = `
  SET calls = calls + ?, input_tokens = input_tokens + ?, output_tokens = output_tokens + ?,
    cache_read_tokens = cache_read_tokens + ?, cache_write_tokens = cache_write_tokens + ?, cost = cost + ?,
    estimated = max(estimated, ?)`;

export type QuotaStatements = ReturnType<typeof quotaStatements>;

export function quotaStatements(file: SmallFile) {
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
    shortenHeld: file.query(
      "UPDATE held INDEXED BY held_by_tenant SET ends = ?1 WHERE thing = ?2 AND tenant = ?3 AND ends > ?1",
    ),
    endHeld: file.query("DELETE FROM held WHERE ends <= ?"),
    findHeld: file.query<{ ends: number }>("SELECT ends FROM held WHERE thing = ? AND user = ? AND id = ?"),
    hold: file.query(`
      INSERT INTO held (thing, user, id, tenant, ends) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET ends = excluded.ends`),
    release: file.query("DELETE FROM held WHERE thing = ? AND user = ? AND id = ? AND ends <= ?"),
    endStored: file.query("DELETE FROM stored WHERE ends <= ?"),
    findStored: file.query<Bytes>("SELECT bytes FROM stored WHERE user = ? AND id = ?"),
    storedSum: file.query<Bytes>("SELECT bytes FROM stored_sums WHERE name = ?"),
    store: file.query(`
      INSERT INTO stored (user, id, tenant, bytes, ends) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET bytes = excluded.bytes, ends = excluded.ends`),
    dropStored: file.query("DELETE FROM stored WHERE user = ? AND id = ?"),
    shortenReserved: file.query("UPDATE reserved SET ends = ?1 WHERE ends > ?1"),
    endReserved: file.query("DELETE FROM reserved WHERE ends <= ?"),
    reserve: file.query(
      "INSERT INTO reserved (id, tenant, user, tokens, cost, ends) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    extendReserved: file.query("UPDATE reserved SET ends = ? WHERE id = ? AND ends > ?"),
    findReserved: file.query("SELECT 1 FROM reserved WHERE id = ?"),
    unreserve: file.query("DELETE FROM reserved WHERE id = ?"),
    spent: file.query<Sum>("SELECT tokens, cost FROM spent WHERE name = ? AND period = ?"),
    /** By a tenant and a user, on a day and in its month. */
    spend: file.query(`
      INSERT INTO spent (name, period, tokens, cost) VALUES (?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost`),
    // A month comes before all of its days.
    forgetSpent: file.query("DELETE FROM spent WHERE period < ?"),
    forgetSpentBy: file.query("DELETE FROM spent WHERE name = ?"),
    forgetUsageOf: file.query("DELETE FROM usage WHERE user = ?"),
    leastSpent: file.query<{ readonly name: string }>(
      "SELECT name FROM spent WHERE period = ? AND name <> ? ORDER BY tokens, cost LIMIT ?",
    ),
    countMore: file.query(`UPDATE usage ${MORE} WHERE user = ? AND day = ? AND agent = ? AND model = ?`),
    rows: file.query<Count>("SELECT count(*) AS n FROM usage WHERE user = ? AND day = ?"),
    count: file.query(`INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ${ADDED}`),
    usage: file.query<Marked<UsageRow>>(`
      SELECT day, agent, model, calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost, estimated
      FROM usage WHERE user = ? AND day >= ?`),
    forgetUsage: file.query("DELETE FROM usage WHERE day < ?"),
    countMoreOfUser: file.query(`UPDATE users ${MORE} WHERE tenant = ? AND day = ? AND user = ?`),
    users: file.query<Count>("SELECT count(*) AS n FROM users WHERE tenant = ? AND day = ?"),
    countUser: file.query(`INSERT INTO users VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ${ADDED}`),
    usageByUser: file.query<Marked<Used & { readonly user: string }>>(`
      SELECT user, sum(calls) AS calls, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
        sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens, sum(cost) AS cost,
        max(estimated) AS estimated
      FROM users WHERE tenant = ? AND day >= ? GROUP BY user`),
    forgetUsers: file.query("DELETE FROM users WHERE day < ?"),
    forgetUsersOf: file.query("DELETE FROM users WHERE tenant = ?"),
  };
}
