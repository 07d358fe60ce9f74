// How many requests a minute, of one process: for the stores that only one process has.

import type { Owner } from "../core/ids.ts";
import { takeRequest } from "../quotas/rules.ts";
import type { QuotaStore } from "../quotas/store.ts";
import { namesOf } from "./quota-names.ts";

/** Past this those go that have a whole minute's share again; then those that were not seen for longest. */
const MAX_NAMES = 100_000;

/** Keeps of each name what `takeRequest` needs. */
export function requestRate(now: () => number): QuotaStore["take"] {
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
