// Quotas in tables, for all processes that use them. What concerns a tenant is changed by one at a time. What was used
// survives the death of any process; that of PostgreSQL's machine may cost the last moments.

import type { Owner } from "../../protocol/ids.ts";
import { exceeded, heldUntil, takeRequest } from "../../quotas/rules.ts";
import { type PerScope, type QuotaStore, RESOURCES, type Resource, SCOPES } from "../../quotas/store.ts";
import { namesOf } from "../row-keys.ts";
import { type Ask, type Database, momentOf, type Transaction, timeOf } from "./database.ts";
import { changeQuotas, postgresSpending, timeIn } from "./spending.ts";

export function postgresQuotas(database: Database): QuotaStore {
  const change = <T>(owner: Owner, work: (tx: Transaction) => Promise<T>) =>
    changeQuotas(database, owner, work);

  return {
    async take(owner, perMinute) {
      const names = namesOf(owner);
      const levels = SCOPES.filter((level) => perMinute[level] !== undefined);
      if (levels.length === 0) return undefined;
      return change(owner, async (tx) => {
        const time = timeIn(database, tx);
        const rows = await tx.rows<{ name: string; ends: number }>(
          "SELECT name, ends FROM rates WHERE name = ANY ($1)",
          [levels.map((level) => names[level])],
        );
        const ends = new Map(rows.map((row) => [row.name, row.ends]));
        const taken = takeRequest(
          { tenant: ends.get(names.tenant), user: ends.get(names.user) },
          perMinute,
          await time,
        );
        if ("refused" in taken) return taken.refused;
        tx.write(
          `INSERT INTO rates SELECT * FROM unnest($1::text[], $2::float8[])
          ON CONFLICT (name) DO UPDATE SET ends = excluded.ends`,
          [levels.map((level) => names[level]), levels.map((level) => taken.next[level])],
        );
        return undefined;
      });
    },

    async hold(owner, { thing, id, longestMs, ...life }, most) {
      const { tenant, user } = namesOf(owner);
      return change(owner, async (tx) => {
        if (longestMs !== undefined)
          tx.write(
            `UPDATE held SET ends = ${momentOf(3)} + $4::bigint WHERE tenant = $1 AND thing = $2 AND ends > ${momentOf(3)} + $4::bigint`,
            [tenant, thing, database.clock(), longestMs],
          );
        const time = timeIn(database, tx);
        const known = tx.rows<{ ends: number }>(
          `SELECT ends FROM held WHERE thing = $1 AND owner = $2 AND id = $3 AND ends > ${timeOf(4)}`,
          [thing, user, id, database.clock()],
        );
        const counts = await countHeld(tx.rows, owner);
        const [before] = await known;
        const held = { tenant: counts.tenant[thing], user: counts.user[thing] };
        const full = exceeded(held, before ? 0 : 1, most);
        if (full) return full;
        const now = await time;
        const { isNew, ends } = heldUntil(before?.ends, now, life);
        tx.write(
          `INSERT INTO held (thing, owner, id, tenant, ends) VALUES ($1, $2, $3, $4, $5)
          ON CONFLICT (thing, owner, id) DO UPDATE SET ends = excluded.ends`,
          [thing, user, id, tenant, ends],
        );
        tx.write("DELETE FROM held WHERE tenant = $1 AND ends <= $2", [tenant, now]);
        return isNew ? "new" : "kept";
      });
    },

    async release(owner, thing, id, makingMs) {
      await database.query(
        `DELETE FROM held WHERE thing = $1 AND owner = $2 AND id = $3
          AND ($5::bigint IS NULL OR ends <= ${timeOf(4)} + $5)`,
        [thing, namesOf(owner).user, id, database.clock(), makingMs ?? null],
      );
    },

    async setStored(owner, { id, bytes, ms }, most) {
      const { tenant, user } = namesOf(owner);
      return change(owner, async (tx) => {
        endStored(tx, tenant);
        const time = timeIn(database, tx);
        const before = tx.rows<{ bytes: number }>("SELECT bytes FROM stored WHERE owner = $1 AND id = $2", [
          user,
          id,
        ]);
        const sums = await storedSums(tx, owner);
        const more = bytes - ((await before)[0]?.bytes ?? 0);
        const full = exceeded(sums, more, most);
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

    held: (owner) => countHeld((sql, values) => database.query(sql, values), owner),

    ...postgresSpending(database),
  };

  async function countHeld(ask: Ask, owner: Owner): Promise<PerScope<Record<Resource, number>>> {
    const { tenant, user } = namesOf(owner);
    const rows = await ask<{ thing: Resource; tenant: number; user: number }>(
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
}
