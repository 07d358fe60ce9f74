// Quotas in tables, for all processes that share them. Changes of one tenant run one after the other. Usage survives
// the death of a process. If PostgreSQL's machine crashes, the most recent changes may be lost.

import { takeRequest } from "../../quotas/rules.ts";
import { type QuotaStore, SCOPES } from "../../quotas/store.ts";
import { namesOf } from "../row-keys.ts";
import { POSTGRES } from "../sql/dialect.ts";
import type { Statement } from "../sql/executor.ts";
import { sqlHoldings } from "../sql/quotas.ts";
import type { Database } from "./database.ts";
import { executorOn } from "./executor.ts";
import { postgresSpending } from "./spending.ts";

export function postgresQuotas(database: Database): QuotaStore {
  // Changes complete before they are on disk.
  const of = (tenant: string) =>
    executorOn(database, ["quotas", tenant], "SET LOCAL synchronous_commit = off");

  return {
    async take(owner, perMinute) {
      const names = namesOf(owner);
      const levels = SCOPES.filter((level) => perMinute[level] !== undefined);
      if (levels.length === 0) return undefined;
      const executor = of(owner.tenant);
      const asked: Statement<{ now: number; name: string | null; ends: number | null }> = {
        sql: RATES,
        values: [levels.map((level) => names[level]), executor.clock()],
      };
      return executor.change([asked], ([rows]) => {
        const ends = new Map(rows.map((row) => [row.name, row.ends ?? undefined]));
        const before = { tenant: ends.get(names.tenant), user: ends.get(names.user) };
        const taken = takeRequest(before, perMinute, rows[0]?.now ?? 0);
        if ("refused" in taken) return { writes: [], result: taken.refused };
        const writes = levels.map((level) => ({
          sql: PUT_RATE,
          values: [names[level], taken.next[level] ?? null],
        }));
        return { writes, result: undefined };
      });
    },

    ...sqlHoldings(POSTGRES, of),
    ...postgresSpending(database, of),
  };
}

/** Returns at least one row. */
const RATES = `
  SELECT now, name, ends FROM (SELECT ${POSTGRES.time(2)} AS now) AS moment
  LEFT JOIN rates ON ${POSTGRES.among("name", 1)}`;
const PUT_RATE = `
  INSERT INTO rates (name, ends) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET ends = excluded.ends`;
