// Fair shares: which tenant may take one of a limited number of places, and which tenant loses one. Those who have places to
// give (streams, run slots, subagents, connections, sandboxes, queues) ask here and carry the answer out.

import { AppError } from "./errors.ts";

/**
 * `over_share`: refused because the tenant holds its share, or because what is left is reserved for others. `full`:
 * refused although the tenant holds less than its share.
 */
export type Verdict = "granted" | "over_share" | "full";

export interface Places {
  readonly size: number;
  /** How many places one tenant alone leaves free, so that the first request of another one succeeds. */
  readonly reserve: number;
}

/** Places that only one tenant can ask for need no reserve. */
export function sharedPlaces(size: number, hasSeveralTenants: boolean): Places {
  return { size, reserve: hasSeveralTenants && size > 1 ? Math.max(1, Math.floor(size / 8)) : 0 };
}

export interface Holding {
  /** Places that the tenant holds. */
  readonly own: number;
  /** Places that all tenants hold. */
  readonly used: number;
  /** Other tenants that hold places. */
  readonly others: number;
}

/**
 * Whether a tenant may take one more place. While it is the only one it may take all but the reserve. Beside others it may take
 * an equal share, never more than half. Of the last places it may take as many as it leaves free, so that a tenant without a
 * place gets one as long as there is one.
 */
export function verdict({ size, reserve }: Places, { own, used, others }: Holding): Verdict {
  const free = size - used;
  const isWithinShare = own === 0 || (own + 1) * (others + 1) <= size;
  if (free <= 0) return isWithinShare || others === 0 ? "full" : "over_share";
  return own < free || (free > reserve && isWithinShare) ? "granted" : "over_share";
}

/** When a tenant at its share may try again, in ms: when it gives a place back is unknown. */
const RETRY_MS = 5_000;

/** Who holds how many of the places. */
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

  /** `taken` more places count as used, by this tenant if `own` says so. */
  verdict(tenant: string, { taken = 0, own = 0 } = {}): Verdict {
    const held = this.#held.get(tenant);
    const others = this.#held.size - (held === undefined ? 0 : 1);
    return verdict(this.#places, { own: (held ?? 0) + own, used: this.#used + taken, others });
  }

  /** Takes places without asking. Returns a function that gives them back, once. */
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

  /** Those who hold places. */
  tenants(): string[] {
    return [...this.#held.keys()];
  }

  /**
   * Takes a place. Throws `limit_exceeded` for a tenant at its share, `unavailable` when all places are taken. `what` they
   * are, in the plural, and the setting that says how many there are, are part of the error's text.
   */
  takeOrRefuse(tenant: string, { what, setting }: { what: string; setting: string }): () => void {
    const answer = this.verdict(tenant);
    if (answer === "granted") return this.take(tenant);
    const { size } = this.#places;
    if (answer === "full")
      throw new AppError("unavailable", `All ${size} ${what} of this server (\`${setting}\`) are taken.`);
    const most = this.heldBy(tenant);
    throw new AppError(
      "limit_exceeded",
      `Your tenant has ${most} of the ${size} ${what} of this server (\`${setting}\`), which is its share: the others are for other tenants. Try again in ${RETRY_MS / 1000} s.`,
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

/** How often each tenant occurs. */
export function countsOf(tenants: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const tenant of tenants) counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
  return counts;
}

/**
 * Who loses something, in this order, when `asking` adds to what is full: itself alone if it holds a quarter of what all
 * hold, else those who hold more than it, first the one that holds most, and itself last.
 */
export function losers(held: ReadonlyMap<string, number>, asking: string): string[] {
  const own = held.get(asking) ?? 0;
  const total = held.values().reduce((sum, amount) => sum + amount, 0);
  if (own > 0 && own * 4 >= total) return [asking];
  const larger = [...held].filter(([tenant, amount]) => tenant !== asking && amount >= own);
  return [...larger.sort((a, b) => b[1] - a[1]).map(([tenant]) => tenant), asking];
}
