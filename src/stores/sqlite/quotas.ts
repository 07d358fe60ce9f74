// Quotas in a file of their own, `usage.db`. What counts for a budget survives the death of the process; other spending of its
// last tenth of a second may not. The death of the machine may cost the last moments. The rate of requests is the process's own.

import { join } from "node:path";
import { type Logger, SILENT } from "../../lib/logger.ts";
import { steadyClock } from "../../lib/steady-clock.ts";
import type { Owner } from "../../protocol/ids.ts";
import { exceeded, heldUntil, takeRequest } from "../../quotas/rules.ts";
import { type PerScope, type QuotaStore, RESOURCES } from "../../quotas/store.ts";
import { namesOf } from "../row-keys.ts";
import { quotaStatements } from "./quota-tables.ts";
import { QUOTA_TABLES } from "./schema.ts";
import { openSmallFile, type SmallFile } from "./small-file.ts";
import { type SpendingOptions, sqliteSpending } from "./spending.ts";

export interface OpenQuotas {
  readonly quotas: QuotaStore;
  close(): void;
}

/**
 * Makes the file when there is none. Throws `unavailable` when it cannot be used, as do all later calls. Errors
 * that no caller gets go to `logger`.
 */
export function openSqliteQuotas(
  dataDir: string,
  now: () => number = Date.now,
  logger: Logger = SILENT,
): OpenQuotas {
  const bounds = { maxNames: Number.POSITIVE_INFINITY, maxUncounted: 64, countMs: 100 };
  return openQuotas(join(dataDir, "usage.db"), { now, logger, bounds });
}

/**
 * Lost when it is closed. Of more than `maxNames` tenants and users it forgets some: first those that were last counted
 * before this month, then those that have spent least in it.
 */
export const openMemoryQuotas = (now: () => number = Date.now, maxNames = 100_000): OpenQuotas =>
  openQuotas(":memory:", {
    now,
    logger: SILENT,
    bounds: { maxNames, maxUncounted: 64, countMs: undefined },
  });

function openQuotas(path: string, options: SpendingOptions): OpenQuotas {
  const pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL";
  const file = openSmallFile({ path, content: "The usage", pragmas, tables: QUOTA_TABLES });
  const { quotas, stop } = quotasIn(file, options);
  return {
    quotas,
    close() {
      stop();
      file.close();
    },
  };
}

function quotasIn(file: SmallFile, options: SpendingOptions) {
  const { now } = options;
  const { read } = file;
  const change = <T>(work: () => T) => file.write(work);
  const sql = quotaStatements(file);
  const take = requestRate(steadyClock(now));
  const { store: spending, stop } = sqliteSpending(file, sql, options);

  const quotas: QuotaStore = {
    ...spending,

    take: async (owner, perMinute) => read(() => take(owner, perMinute)),

    async hold(owner, { thing, id, longestMs, ...life }, most) {
      const { tenant, user } = namesOf(owner);
      return change(() => {
        const time = now();
        sql.endHeld.run(time);
        if (longestMs !== undefined) sql.shortenHeld.run(time + longestMs, thing, tenant);
        const known = sql.findHeld.get(thing, user, id)?.ends;
        const held = {
          tenant: sql.heldByTenant.get(thing, tenant)?.n ?? 0,
          user: sql.heldByUser.get(thing, user)?.n ?? 0,
        };
        const full = exceeded(held, known === undefined ? 1 : 0, most);
        if (full) return full;
        const { isNew, ends } = heldUntil(known, time, life);
        sql.hold.run(thing, user, id, tenant, ends);
        return isNew ? "new" : "kept";
      });
    },

    async release(owner, thing, id, makingMs = Number.POSITIVE_INFINITY) {
      change(() => sql.release.run(thing, namesOf(owner).user, id, now() + makingMs));
    },

    async setStored(owner, { id, bytes, ms }, most) {
      const { tenant, user } = namesOf(owner);
      return change(() => {
        const sums = storedSums(owner);
        const full = exceeded(sums, bytes - (sql.findStored.get(user, id)?.bytes ?? 0), most);
        if (full) return full;
        if (bytes > 0) sql.store.run(user, id, tenant, bytes, now() + ms);
        else sql.dropStored.run(user, id);
        return undefined;
      });
    },

    stored: async (owner) => change(() => storedSums(owner)),

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
  };

  return { quotas, stop };

  function storedSums(owner: Owner): PerScope<number> {
    sql.endStored.run(now());
    const { tenant, user } = namesOf(owner);
    return { tenant: sql.storedSum.get(tenant)?.bytes ?? 0, user: sql.storedSum.get(user)?.bytes ?? 0 };
  }
}

/** Past this those go that have a whole minute's share again; then those that were not seen for longest. */
const MAX_NAMES = 100_000;

/** How many requests a minute, in this process only. Keeps of each name what `takeRequest` needs. */
function requestRate(now: () => number): QuotaStore["take"] {
  const ends = new Map<string, number>();

  return async (owner: Owner, perMinute) => {
    const time = now();
    const { tenant, user } = namesOf(owner);
    const taken = takeRequest({ tenant: ends.get(tenant), user: ends.get(user) }, perMinute, time);
    if ("refused" in taken) return taken.refused;
    for (const [name, end] of [
      [tenant, taken.next.tenant],
      [user, taken.next.user],
    ] as const) {
      if (end === undefined) continue;
      ends.delete(name);
      ends.set(name, end);
    }
    if (ends.size > MAX_NAMES) forget(ends, time);
    return undefined;
  };
}

function forget(ends: Map<string, number>, time: number): void {
  for (const [name, end] of ends) if (end <= time) ends.delete(name);
  for (const name of ends.keys()) {
    if (ends.size <= MAX_NAMES / 2) return;
    ends.delete(name);
  }
}
