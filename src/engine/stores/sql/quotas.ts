// Tables for holds and stored bytes, by tenant and user. Changes of the same tenant run one after the other.

import { exceeded, heldUntil } from "../../quotas/rules.ts";
import { type PerScope, type QuotaStore, RESOURCES, type Resource } from "../../quotas/store.ts";
import { namesOf } from "../row-keys.ts";
import type { SqlDialect } from "./dialect.ts";
import type { Executor, Statement } from "./executor.ts";

type HoldingStore = Pick<QuotaStore, "hold" | "release" | "held" | "setStored" | "stored">;

interface HeldRow {
  readonly now: number;
  readonly ends: number | null;
}

interface ExpiredRow {
  readonly now: number;
  readonly owner: string | null;
  readonly bytes: number | null;
}

interface SumRow {
  readonly name: string;
  readonly bytes: number;
}

/** `of` returns the executor for changes of a tenant. */
export function sqlHoldings(dialect: SqlDialect, of: (tenant: string) => Executor): HoldingStore {
  const sql = textsOf(dialect);

  return {
    async hold(owner, { thing, id, longestMs, ...life }, most) {
      const { tenant, user } = namesOf(owner);
      const executor = of(owner.tenant);
      const clock = executor.clock();
      const known: Statement<HeldRow> = { sql: sql.known, values: [thing, user, id, clock] };
      const counts: Statement<PerScope<number>> = { sql: sql.count, values: [thing, tenant, user, clock] };
      return executor.change([known, counts], ([[before], [held = NONE]]) => {
        const now = before?.now ?? 0;
        const last = longestMs === undefined ? Number.POSITIVE_INFINITY : now + longestMs;
        const writes: Statement[] =
          longestMs === undefined ? [] : [{ sql: sql.shorten, values: [tenant, thing, last] }];
        const ends = before?.ends != null && before.ends > now ? Math.min(before.ends, last) : undefined;
        const full = exceeded(held, ends === undefined ? 1 : 0, most);
        if (full) return { writes, result: full };
        const next = heldUntil(ends, now, life);
        writes.push(
          { sql: sql.hold, values: [thing, user, id, tenant, next.ends] },
          { sql: sql.endHeld, values: [tenant, now] },
        );
        return { writes, result: next.isNew ? "new" : "kept" };
      });
    },

    async release(owner, thing, id, makingMs) {
      const executor = of(owner.tenant);
      const values = [thing, namesOf(owner).user, id, executor.clock(), makingMs ?? null];
      await executor.write({ sql: sql.release, values });
    },

    async held(owner) {
      const { tenant, user } = namesOf(owner);
      const executor = of(owner.tenant);
      const rows = await executor.read<PerScope<number> & { thing: Resource }>({
        sql: sql.counts,
        values: [tenant, user, executor.clock()],
      });
      const at = (scope: "tenant" | "user") => {
        const numbers = RESOURCES.map((thing) => rows.find((row) => row.thing === thing)?.[scope] ?? 0);
        const [runs = 0, streams = 0, threads = 0] = numbers;
        return { runs, streams, threads };
      };
      return { tenant: at("tenant"), user: at("user") };
    },

    async setStored(owner, { id, bytes, ms }, most) {
      const { tenant, user } = namesOf(owner);
      const executor = of(owner.tenant);
      const expired: Statement<ExpiredRow> = { sql: sql.expired, values: [tenant, executor.clock()] };
      const before: Statement<{ bytes: number; ends: number }> = { sql: sql.stored, values: [user, id] };
      const sums: Statement<SumRow> = { sql: sql.sums, values: [tenant, user] };
      return executor.change([expired, before, sums], ([gone, [known], counted]) => {
        const now = gone[0]?.now ?? 0;
        const writes = ended(tenant, gone);
        const more = bytes - (known && known.ends > now ? known.bytes : 0);
        const full = exceeded(without(gone, counted, { tenant, user }), more, most);
        if (full) return { writes, result: full };
        writes.push(
          bytes > 0
            ? { sql: sql.store, values: [user, id, tenant, bytes, now + ms] }
            : { sql: sql.drop, values: [user, id] },
          ...[tenant, user].map((name) => ({ sql: sql.add, values: [name, more] })),
        );
        if (bytes === 0) writes.push({ sql: sql.forget, values: [[tenant, user]] });
        return { writes, result: undefined };
      });
    },

    async stored(owner) {
      const { tenant, user } = namesOf(owner);
      const executor = of(owner.tenant);
      const expired: Statement<ExpiredRow> = { sql: sql.expired, values: [tenant, executor.clock()] };
      const sums: Statement<SumRow> = { sql: sql.sums, values: [tenant, user] };
      return executor.change([expired, sums], ([gone, counted]) => ({
        writes: ended(tenant, gone),
        result: without(gone, counted, { tenant, user }),
      }));
    },
  };

  /** Stops counting expired stored bytes. */
  function ended(tenant: string, gone: readonly ExpiredRow[]): Statement[] {
    const rows = gone.flatMap(({ owner, bytes }) =>
      owner === null || bytes === null ? [] : { owner, bytes },
    );
    if (rows.length === 0) return [];
    const all = rows.reduce((sum, { bytes }) => sum + bytes, 0);
    return [
      { sql: sql.endStored, values: [tenant, gone[0]?.now ?? 0] },
      { sql: sql.add, values: [tenant, -all] },
      ...rows.map(({ owner, bytes }) => ({ sql: sql.add, values: [owner, -bytes] })),
      { sql: sql.forget, values: [[tenant, ...rows.map(({ owner }) => owner)]] },
    ];
  }
}

const NONE: PerScope<number> = { tenant: 0, user: 0 };

/** Returns the sums of a tenant and a user without the expired entries. */
function without(
  gone: readonly ExpiredRow[],
  sums: readonly SumRow[],
  { tenant, user }: PerScope<string>,
): PerScope<number> {
  const of = (name: string) => sums.find((row) => row.name === name)?.bytes ?? 0;
  const less = (fits: (owner: string | null) => boolean) =>
    gone.reduce((sum, { owner, bytes }) => sum + (fits(owner) ? (bytes ?? 0) : 0), 0);
  return { tenant: of(tenant) - less(() => true), user: of(user) - less((owner) => owner === user) };
}

function textsOf({ among, time }: SqlDialect) {
  const now = (n: number) => `(SELECT ${time(n)} AS now) AS moment`;

  return {
    /** Returns one row. */
    known: `SELECT now, ends FROM ${now(4)} LEFT JOIN held ON thing = $1 AND owner = $2 AND id = $3`,
    // Two statements, because each uses a different index.
    count: `SELECT
      (SELECT count(*) FROM held WHERE tenant = $2 AND thing = $1 AND ends > ${time(4)}) AS tenant,
      (SELECT count(*) FROM held WHERE thing = $1 AND owner = $3 AND ends > ${time(4)}) AS "user"`,
    counts: `
      SELECT thing, count(*) AS tenant, count(CASE WHEN owner = $2 THEN 1 END) AS "user" FROM held
      WHERE tenant = $1 AND ends > ${time(3)} GROUP BY thing`,
    shorten: "UPDATE held SET ends = $3 WHERE tenant = $1 AND thing = $2 AND +ends > $3",
    hold: `
      INSERT INTO held (thing, owner, id, tenant, ends) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (thing, owner, id) DO UPDATE SET ends = excluded.ends`,
    endHeld: "DELETE FROM held WHERE tenant = $1 AND ends <= $2",
    release: `
      DELETE FROM held WHERE thing = $1 AND owner = $2 AND id = $3
        AND (CAST($5 AS bigint) IS NULL OR ends <= ${time(4)} + CAST($5 AS bigint))`,
    /** Returns at least one row. */
    expired: `
      SELECT now, owner, CAST(sum(bytes) AS bigint) AS bytes FROM ${now(2)}
      LEFT JOIN stored ON tenant = $1 AND ends <= now GROUP BY now, owner`,
    stored: "SELECT bytes, ends FROM stored WHERE owner = $1 AND id = $2",
    sums: "SELECT name, bytes FROM stored_sums WHERE name IN ($1, $2)",
    store: `
      INSERT INTO stored (owner, id, tenant, bytes, ends) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (owner, id) DO UPDATE SET bytes = excluded.bytes, ends = excluded.ends`,
    drop: "DELETE FROM stored WHERE owner = $1 AND id = $2",
    endStored: "DELETE FROM stored WHERE tenant = $1 AND ends <= $2",
    add: `
      INSERT INTO stored_sums (name, bytes) VALUES ($1, $2)
      ON CONFLICT (name) DO UPDATE SET bytes = stored_sums.bytes + excluded.bytes`,
    forget: `DELETE FROM stored_sums WHERE bytes = 0 AND ${among("name", 1)}`,
  };
}
