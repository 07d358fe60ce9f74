// How the tables of quotas are changed: what concerns a tenant by one at a time, at the database's time.

import type { Owner } from "../../core/ids.ts";
import { type Database, type Transaction, timeOf } from "./database.ts";

/** It is over before it is on the disk: see quotas.ts for what that may cost. */
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

export function timeIn(database: Database, tx: Transaction): Promise<number> {
  const time = tx
    .rows<{ now: number }>(`SELECT ${timeOf(1)} AS now`, [database.clock()])
    .then(([row]) => row?.now ?? 0);
  // It is awaited after others, which fail with it.
  time.catch(() => {});
  return time;
}
