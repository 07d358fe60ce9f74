// Tells that most of a budget is used, once for each budget and period.

import { LRUCache } from "lru-cache";
import type { Owner } from "../../protocol/ids.ts";
import type { LimitDetails } from "../../protocol/limit-details.ts";
import type { QuotaConfig } from "./config.ts";
import type { LimitState } from "./limit-states.ts";
import { detailsOf } from "./refusals.ts";

/** A budget that is mostly used. */
export interface BudgetState {
  /** The same for one budget of a tenant, or of one of its users, in one period. */
  readonly id: string;
  /** When the period ends, in ms since 1970. */
  readonly until: number;
  readonly details: Omit<LimitDetails, "message">;
}

/** Budgets and periods that a process remembers to have told of. */
const MAX_TOLD = 10_000;

/** A function that calls `tell` for each of the budgets that it has not called it for in their period. */
export function onceAPeriod(
  config: Pick<QuotaConfig, "currency">,
  tell: (owner: Owner, state: BudgetState) => void,
): (owner: Owner, near: readonly LimitState[]) => void {
  const told = new LRUCache<string, true>({ max: MAX_TOLD });
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
