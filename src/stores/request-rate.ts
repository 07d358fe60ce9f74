// How many requests a minute, of one process: for the stores that only one process has.

import type { Owner } from "../core/ids.ts";
import { type QuotaStore, SCOPES } from "../quotas/store.ts";
import { namesOf } from "./quota-names.ts";

const MINUTE_MS = 60_000;
/** Past this those go that have a whole minute's share again; then those that were not seen for longest. */
const MAX_NAMES = 100_000;

/**
 * Of each name it is known when all its requests so far are worked off, if they are worked off evenly: none may be
 * more than a minute ahead.
 */
export function requestRate(now: () => number): QuotaStore["take"] {
  const ends = new Map<string, number>();

  return async (owner: Owner, perMinute) => {
    const time = now();
    const names = namesOf(owner);
    const next = SCOPES.flatMap((level) => {
      const most = perMinute[level];
      if (most === undefined) return [];
      const end = Math.max(ends.get(names[level]) ?? 0, time) + MINUTE_MS / most;
      return [{ level, end, wait: end - MINUTE_MS - time }];
    });
    // A hundredth of a millisecond: sums of fractions are not exact.
    const full = next.filter(({ wait }) => wait > 0.01).toSorted((a, b) => b.wait - a.wait)[0];
    if (full) return { full: full.level, wait_ms: Math.ceil(full.wait) };
    for (const { level, end } of next) {
      ends.delete(names[level]);
      ends.set(names[level], end);
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
