// Reports that most of a budget is used, once per budget and period.

import { LRUCache } from "lru-cache";
import { atMost } from "../../lib/lru.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { LimitDetails } from "../../protocol/limit-details.ts";
import type { QuotaConfig } from "./config.ts";
import type { LimitState } from "./limit-states.ts";
import { detailsOf } from "./refusals.ts";

/** A budget that is almost used up. */
export interface BudgetState {
  /** Identifies a budget of a tenant or of one of its users in one period. */
  readonly id: string;
  /** The end of the period, in milliseconds since 1970. */
  readonly until: number;
  readonly details: Omit<LimitDetails, "message">;
}

/** The maximum number of reports that a process remembers. */
const MAX_TOLD = 10_000;

/** Returns a function that calls `tell` once per budget and period. */
export function onceAPeriod(
  config: Pick<QuotaConfig, "currency">,
  tell: (owner: Owner, state: BudgetState) => void,
): (owner: Owner, near: readonly LimitState[]) => void {
  const told = new LRUCache<string, true>(atMost(MAX_TOLD));
  return (owner, near) => {
    for (const state of near) {
      const { limit, of, resets_at = "" } = state;
      const id = JSON.stringify(["budget.near", of === "user" ? owner.user : null, limit, resets_at]);
      const key = JSON.stringify([owner.tenant, id]);
      if (told.has(key)) continue;
      told.set(key, true);
      tell(owner, { id, until: Date.parse(resets_at), details: detailsOf(state, config.currency) });
    }
  };
}
