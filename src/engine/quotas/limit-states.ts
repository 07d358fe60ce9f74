// Computes how much of each limit is used and how much is left.

import type { Owner } from "../../protocol/ids.ts";
import type { LimitName, Quota } from "./config.ts";
import { inUnits, isMoney } from "./money.ts";
import { endOf } from "./rules.ts";
import {
  type Accounts,
  BUDGETS,
  type PerScope,
  type QuotaScope,
  type QuotaStore,
  RESOURCES,
  SCOPES,
} from "./store.ts";

/** A limit and its current use. */
export interface LimitState {
  readonly limit: LimitName;
  readonly of: QuotaScope;
  readonly most: number;
  readonly used: number;
  readonly left: number;
  /** The time at which a daily or monthly budget resets. */
  readonly resets_at?: string;
}

/** The form in which reports show a limit. */
export interface ReportedLimit extends LimitState {
  /** For limits on money: the same amounts in units of the currency. The fields above are in millionths of a unit. */
  readonly in_units?: Pick<LimitState, "most" | "used" | "left">;
}

/** The limit on each resource. */
export const LIMIT_OF = { runs: "concurrent_runs", streams: "streams", threads: "threads" } as const;

/** Returns every configured limit on an owner, both the tenant's and the user's. Throws `unavailable`. */
export async function limitStates(
  store: QuotaStore,
  config: PerScope<Quota>,
  owner: Owner,
): Promise<ReportedLimit[]> {
  const [accounts, held, stored] = await Promise.all([
    store.accounts(owner),
    store.held(owner),
    store.stored(owner),
  ]);
  const things = SCOPES.flatMap((of) =>
    RESOURCES.flatMap((thing) => state(config, LIMIT_OF[thing], of, held[of][thing])),
  );
  const bytes = SCOPES.flatMap((of) => state(config, "stored_bytes", of, stored[of]));
  return [...budgetStates(config, accounts).map(withUnits), ...things, ...bytes];
}

function withUnits(state: LimitState): ReportedLimit {
  const { limit, most, used, left } = state;
  if (!isMoney(limit)) return state;
  const told = (amount: number) => inUnits(limit, amount);
  return { ...state, in_units: { most: told(most), used: told(used), left: told(left) } };
}

/** Returns the configured budgets and their use. */
export function budgetStates(config: PerScope<Quota>, accounts: Accounts): LimitState[] {
  return SCOPES.flatMap((of) =>
    BUDGETS.flatMap(({ limit, period, unit }) => {
      const resets_at = new Date(endOf(period, accounts.now)).toISOString();
      return state(config, limit, of, accounts[of][period][unit]).map((each) => ({ ...each, resets_at }));
    }),
  );
}

function state(config: PerScope<Quota>, limit: LimitName, of: QuotaScope, used: number): LimitState[] {
  const most = config[of][limit];
  return most === undefined ? [] : [{ limit, of, most, used, left: Math.max(0, most - used) }];
}
