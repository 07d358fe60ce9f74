// What is asked of `usage.db`.

import type { UsageRow, Used } from "../../quotas/store.ts";
import type { Marked } from "../usage-rows.ts";
import type { SmallFile } from "./small-file.ts";

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
  const by = (column: "tenant" | "owner") => ({
    held: file.query<Count>(`SELECT count(*) AS n FROM held WHERE thing = ? AND ${column} = ?`),
    reserved: file.query<Sum>(
      `SELECT sum(tokens) AS tokens, sum(cost) AS cost FROM reserved WHERE ${column} = ?`,
    ),
  });
  const [tenant, user] = [by("tenant"), by("owner")];
  return {
    heldByTenant: tenant.held,
    heldByUser: user.held,
    reservedByTenant: tenant.reserved,
    reservedByUser: user.reserved,
    shortenHeld: file.query(
      "UPDATE held INDEXED BY held_by_tenant SET ends = ?1 WHERE thing = ?2 AND tenant = ?3 AND ends > ?1",
    ),
    endHeld: file.query("DELETE FROM held WHERE ends <= ?"),
    findHeld: file.query<{ ends: number }>("SELECT ends FROM held WHERE thing = ? AND owner = ? AND id = ?"),
    hold: file.query(`
      INSERT INTO held (thing, owner, id, tenant, ends) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET ends = excluded.ends`),
    release: file.query("DELETE FROM held WHERE thing = ? AND owner = ? AND id = ? AND ends <= ?"),
    endStored: file.query("DELETE FROM stored WHERE ends <= ?"),
    findStored: file.query<Bytes>("SELECT bytes FROM stored WHERE owner = ? AND id = ?"),
    storedSum: file.query<Bytes>("SELECT bytes FROM stored_sums WHERE name = ?"),
    store: file.query(`
      INSERT INTO stored (owner, id, tenant, bytes, ends) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET bytes = excluded.bytes, ends = excluded.ends`),
    dropStored: file.query("DELETE FROM stored WHERE owner = ? AND id = ?"),
    shortenReserved: file.query("UPDATE reserved SET ends = ?1 WHERE ends > ?1"),
    endReserved: file.query("DELETE FROM reserved WHERE ends <= ?"),
    reserve: file.query(
      "INSERT INTO reserved (id, tenant, owner, tokens, cost, ends) VALUES (?, ?, ?, ?, ?, ?)",
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
    forgetUsageOf: file.query("DELETE FROM usage WHERE name = ?"),
    leastSpent: file.query<{ readonly name: string }>(
      "SELECT name FROM spent WHERE period = ? AND name <> ? ORDER BY tokens, cost LIMIT ?",
    ),
    countMore: file.query(`UPDATE usage ${MORE} WHERE name = ? AND day = ? AND agent = ? AND model = ?`),
    rows: file.query<Count>("SELECT count(*) AS n FROM usage WHERE name = ? AND day = ?"),
    count: file.query(`INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ${ADDED}`),
    usage: file.query<Marked<UsageRow>>(`
      SELECT day, agent, model, calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost, estimated
      FROM usage WHERE name = ? AND day >= ?`),
    forgetUsage: file.query("DELETE FROM usage WHERE day < ?"),
    countMoreOfUser: file.query(`UPDATE usage_of_users ${MORE} WHERE tenant = ? AND day = ? AND "user" = ?`),
    users: file.query<Count>("SELECT count(*) AS n FROM usage_of_users WHERE tenant = ? AND day = ?"),
    countUser: file.query(`INSERT INTO usage_of_users VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ${ADDED}`),
    usageByUser: file.query<Marked<Used & { readonly user: string }>>(`
      SELECT "user", sum(calls) AS calls, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
        sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens, sum(cost) AS cost,
        max(estimated) AS estimated
      FROM usage_of_users WHERE tenant = ? AND day >= ? GROUP BY "user"`),
    forgetUsers: file.query("DELETE FROM usage_of_users WHERE day < ?"),
    forgetUsersOf: file.query("DELETE FROM usage_of_users WHERE tenant = ?"),
  };
}
