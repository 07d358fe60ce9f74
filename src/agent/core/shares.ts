// Fair shares: decides which tenant may take one of a limited number of places, and which tenant loses one. The code that
// owns the places (streams, run slots, subagents, connections, sandboxes, queues) asks this module and applies the answer.

import { AppError } from "./errors.ts";

/**
 * `over_share`: refused because the tenant has its full share, or because the remaining places are reserved
 * for others. `full`: refused although the tenant has less than its share.
 */
export type Verdict = "granted" | "over_share" | "full";

export interface Places {
  readonly size: number;
  /**
   * The number of places that a single tenant leaves free, so the first request of another tenant succeeds.
   */
  readonly reserve: number;
}

/** Returns the places for a process. Places that only one tenant can request need no reserve. */
export function sharedPlaces(size: number, hasSeveralTenants: boolean): Places {
  return { size, reserve: hasSeveralTenants && size > 1 ? Math.max(1, Math.floor(size / 8)) : 0 };
}

export interface PlaceCounts {
  /** The number of places that the tenant occupies. */
  readonly own: number;
  /** The number of places that all tenants occupy. */
  readonly used: number;
  /** The number of other tenants that occupy places. */
  readonly others: number;
}

/**
 * Decides whether a tenant may take one more place. A single tenant may take all places except the reserve.
 * When other tenants occupy places too, it may take an equal share but never more than half. It may also take
 * a place while more places are free than it occupies. Therefore, a tenant without a place gets one whenever
 * one is free.
 */
export function verdict({ size, reserve }: Places, { own, used, others }: PlaceCounts): Verdict {
  const free = size - used;
  const isWithinShare = own === 0 || (own + 1) * (others + 1) <= size;
  if (free <= 0) return isWithinShare || others === 0 ? "full" : "over_share";
  return own < free || (free > reserve && isWithinShare) ? "granted" : "over_share";
}

/**
 * The time in ms after which a tenant that has used its whole share should retry. The value is fixed because
 * no one can know when a place will become free.
 */
const RETRY_MS = 5_000;

/** Counts the places of each tenant. */
export class Shares {
  readonly #places: Places;
  readonly #held = new Map<string, number>();
  #used = 0;

  constructor(places: Places) {
    this.#places = places;
  }

  get used(): number {
    return this.#used;
  }

  /**
   * Returns the verdict for a tenant as if `taken` more places were occupied and the tenant had `own` more
   * places.
   */
  verdict(tenant: string, { taken = 0, own = 0 } = {}): Verdict {
    const held = this.#held.get(tenant);
    const others = this.#held.size - (held === undefined ? 0 : 1);
    return verdict(this.#places, { own: (held ?? 0) + own, used: this.#used + taken, others });
  }

  /**
   * Takes places unconditionally. Returns a function that releases these places. Only the first call of the
   * function has an effect.
   */
  take(tenant: string, count = 1): () => void {
    this.#used += count;
    this.#held.set(tenant, this.heldBy(tenant) + count);
    let isHeld = true;
    return () => {
      if (isHeld) this.#giveBack(tenant, count);
      isHeld = false;
    };
  }

  heldBy(tenant: string): number {
    return this.#held.get(tenant) ?? 0;
  }

  /** Returns the tenants that occupy places. */
  tenants(): string[] {
    return [...this.#held.keys()];
  }

  /**
   * Takes a place. Throws `limit_exceeded` if the tenant has its full share, or `unavailable` when all places
   * are taken. The error's text contains `what`, the plural name of the places, and `setting`, the name of
   * the setting that determines their number.
   */
  takeOrRefuse(tenant: string, { what, setting }: { what: string; setting: string }): () => void {
    const answer = this.verdict(tenant);
    if (answer === "granted") return this.take(tenant);
    const { size } = this.#places;
    if (answer === "full")
      throw new AppError("unavailable", `All ${size} ${what} of this server (\`${setting}\`) are in use.`);
    const most = this.heldBy(tenant);
    throw new AppError(
      "limit_exceeded",
      `Your tenant has ${most} of the ${size} ${what} of this server (\`${setting}\`), which is its full share. Try again in ${RETRY_MS / 1000} s.`,
      { details: { limit: setting, of: "tenant", most, retry_after_ms: RETRY_MS } },
    );
  }

  #giveBack(tenant: string, count: number): void {
    this.#used -= count;
    const left = this.heldBy(tenant) - count;
    if (left > 0) this.#held.set(tenant, left);
    else this.#held.delete(tenant);
  }
}

/** Counts how often each tenant occurs. */
export function countsOf(tenants: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const tenant of tenants) counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
  return counts;
}

/**
 * Returns the tenants that lose a place, in this order, when `asking` requests one and all are taken. If
 * `asking` has at least a quarter of all taken places, `asking` itself loses a place. Otherwise, tenants with
 * at least as many places as `asking` lose theirs, starting with the largest, and `asking` comes last.
 */
export function losers(held: ReadonlyMap<string, number>, asking: string): string[] {
  const own = held.get(asking) ?? 0;
  const total = held.values().reduce((sum, amount) => sum + amount, 0);
  if (own > 0 && own * 4 >= total) return [asking];
  const larger = [...held].filter(([tenant, amount]) => tenant !== asking && amount >= own);
  return [...larger.sort((a, b) => b[1] - a[1]).map(([tenant]) => tenant), asking];
}
