// Quotas in a separate file, `usage.db`. Spending that counts towards a budget survives a crash of the process; other
// spending from the last tenth of a second may be lost. If the machine crashes, the most recent changes may be lost.
// Each process counts request rates separately.

import { join } from "node:path";
import { type Logger, SILENT } from "../../../lib/logger.ts";
import { steadyClock } from "../../../lib/steady-clock.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { takeRequest } from "../../quotas/rules.ts";
import type { QuotaStore } from "../../quotas/store.ts";
import { namesOf, ownerOf } from "../row-keys.ts";
import { SQLITE } from "../sql/dialect.ts";
import { sqlHoldings } from "../sql/quotas.ts";
import { executorOf, tickExecutor } from "./executor.ts";
import { QUOTA_TABLES } from "./schema.ts";
import { openSmallFile, type SmallFile } from "./small-file.ts";
import { type SpendingOptions, sqliteSpending } from "./spending.ts";

export interface OpenQuotas {
  readonly quotas: QuotaStore;
  close(): void;
}

export const usageIn = (dataDir: string) => join(dataDir, "usage.db");

/**
 * Creates the file if it is missing. Throws `unavailable` if it cannot be used; later calls do the same. Errors without
 * a caller go to `logger`.
 */
export function openSqliteQuotas(
  dataDir: string,
  now: () => number = Date.now,
  logger: Logger = SILENT,
): OpenQuotas {
  const bounds = { maxNames: Number.POSITIVE_INFINITY, maxUncounted: 64, countMs: 100 };
  return openQuotas(usageIn(dataDir), { now, logger, bounds });
}

/**
 * The data is lost on closing. If there are more than `maxNames` tenants and users, removes the names that were last
 * counted before this month, then the names with the lowest cost.
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
  const executor = tickExecutor(file);
  const take = requestRate(steadyClock(now));
  const { store: spending, stop } = sqliteSpending(file, options);
  const holdings = sqlHoldings(SQLITE, () => executorOf(executor, now));
  const quotas: QuotaStore = {
    ...spending,
    ...holdings,
    async setStored(owner, stored, most) {
      const [expired] = executor.read<{ owner: string }>({ sql: EXPIRED, values: [now()] });
      // Removes it here, because its tenant may never return.
      if (expired) await holdings.stored(ownerOf(expired.owner));
      return holdings.setStored(owner, stored, most);
    },
    take: async (owner, perMinute) => file.read(() => take(owner, perMinute)),
  };
  return { quotas, stop };
}

const EXPIRED = "SELECT owner FROM stored WHERE ends <= $1 ORDER BY ends LIMIT 1";

/**
 * The maximum number of names. Above this number, names with a full minute's allowance are removed first, followed by
 * the least recently seen names.
 */
const MAX_NAMES = 100_000;

/** Limits requests per minute, in this process only. Stores for each name the times that `takeRequest` needs. */
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
