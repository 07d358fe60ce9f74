// The port to the counters of tenants and users, shared by all processes of a deployment. Times come from the store's
// clock; days and months are UTC. Costs are in millionths of the currency.
//
// A run, stream or thread counts from the time it is acquired until it is released, or until its hold expires because
// its process died. A model call reserves its maximum usage before it starts and settles its actual usage when it ends.

import type { Usage } from "../../agent/core/message.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Quota } from "./config.ts";

/** Everything counts for both the tenant and its user. */
export const SCOPES = ["tenant", "user"] as const;
export type QuotaScope = (typeof SCOPES)[number];
export type PerScope<T> = Readonly<Record<QuotaScope, T>>;

export const RESOURCES = ["runs", "streams", "threads"] as const;
export type Resource = (typeof RESOURCES)[number];

export interface Amounts {
  readonly tokens: number;
  readonly cost: number;
}

/** Amounts used by a tenant or user, and reserved for calls in progress. */
export interface Account {
  readonly day: Amounts;
  readonly month: Amounts;
  readonly reserved: Amounts;
}

export interface Accounts extends PerScope<Account> {
  /** The time of the reading, in milliseconds since 1970. */
  readonly now: number;
}

export type Budget = Pick<Quota, "tokens_per_day" | "tokens_per_month" | "cost_per_day" | "cost_per_month">;
export const BUDGETS = [
  { limit: "tokens_per_day", period: "day", unit: "tokens" },
  { limit: "tokens_per_month", period: "month", unit: "tokens" },
  { limit: "cost_per_day", period: "day", unit: "cost" },
  { limit: "cost_per_month", period: "month", unit: "cost" },
] as const satisfies readonly {
  limit: keyof Budget;
  period: "day" | "month";
  unit: keyof Amounts;
}[];

/** The cost of one call. */
export interface Spending {
  readonly agent: string;
  readonly model: string;
  readonly usage: Usage;
  readonly cost: number;
}

/** The total usage of several model calls. */
export interface UsageTotals extends Omit<Usage, "cache_hit_ratio" | "web_searches"> {
  readonly calls: number;
  readonly cost: number;
}

/** An agent's usage of a model on one day. */
export interface UsageRow extends UsageTotals {
  /** UTC day, for example `2026-11-22`. */
  readonly day: string;
  readonly agent: string;
  readonly model: string;
}

/** The usage of one user of a tenant. Without `user`, the total for all users that do not have their own row. */
export interface UserUsage extends UsageTotals {
  readonly user?: string;
}

/** The usage of all users of a tenant. */
export interface TenantUsage {
  /** The rows, newest first. */
  readonly rows: UsageRow[];
  /**
   * The tenant's `MAX_USERS` users with the highest cost, in descending order. If there are more users, the last entry
   * has no name and contains their total.
   */
  readonly users: UserUsage[];
}

/** The number of days for which usage is kept, including today. */
export const USAGE_DAYS = 100;
/** The maximum number of rows per day, for a user and for a tenant. Further agents and models count as `OTHER`. */
export const MAX_ROWS = 64;
export const OTHER = "other";
/**
 * The maximum number of users of a tenant who are counted by name on one day. All further users are counted together.
 */
export const MAX_USERS = 256;

export interface HeldResource {
  readonly thing: Resource;
  readonly id: string;
  readonly ms: number;
  /**
   * The maximum number of milliseconds for which resources of this kind are held. A hold that would end later was made
   * before the clock was set back; it ends after this time instead.
   */
  readonly longestMs?: number | undefined;
}

export interface QuotaStore {
  /**
   * Counts one request against a token bucket with room for one minute's requests. Returns undefined if the request is
   * allowed. Otherwise, returns the exhausted scope and the wait until its next request. An undefined limit means
   * unlimited.
   */
  take(
    owner: Owner,
    perMinute: PerScope<number | undefined>,
  ): Promise<{ readonly full: QuotaScope; readonly wait_ms: number } | undefined>;
  /**
   * Returns `new` if the resource counts from now on, for `ms` milliseconds unless it is released earlier. With
   * `makingMs`, it counts for that time, and holding it again during that time is still `new`. Returns `kept` if it
   * already counted; it now counts for `ms` from now. Otherwise, returns the scope whose limit is reached. An undefined
   * limit means unlimited.
   */
  hold(
    owner: Owner,
    held: HeldResource & { readonly makingMs?: number | undefined },
    most: PerScope<number | undefined>,
  ): Promise<"new" | "kept" | QuotaScope>;
  /** With `makingMs`, releases the resource only if it is still new. */
  release(owner: Owner, thing: Resource, id: string, makingMs?: number): Promise<void>;
  /**
   * Counts `bytes` as stored under `id` for `ms` milliseconds from now, replacing the previous count. Zero removes the
   * count. If a limit would be exceeded, returns its scope and does nothing. A smaller number is never refused. An
   * undefined limit means unlimited.
   */
  setStored(
    owner: Owner,
    stored: { readonly id: string; readonly bytes: number; readonly ms: number },
    most: PerScope<number | undefined>,
  ): Promise<QuotaScope | undefined>;
  /** Returns the number of bytes stored. */
  stored(owner: Owner): Promise<PerScope<number>>;
  held(owner: Owner): Promise<PerScope<Readonly<Record<Resource, number>>>>;
  /**
   * Reserves amounts for one call if every budget, minus spending and reservations, can cover them and is not used up.
   * The reservation expires after `ms` milliseconds. A reservation that would expire later was made before the clock
   * was set back, and also expires after `ms`. `id` must be new.
   */
  reserve(
    owner: Owner,
    reservation: { readonly id: string; readonly amounts: Amounts; readonly ms: number },
    budgets: PerScope<Budget>,
  ): Promise<{ readonly isGranted: boolean; readonly accounts: Accounts }>;
  /** Extends the tenant's unexpired reservations with these ids to `ms` milliseconds from now. */
  extend(tenant: string, ids: readonly string[], ms: number): Promise<void>;
  /** Ends the reservation, unless it has expired, and counts the spending, if any. */
  settle(owner: Owner, id: string, spending: Spending | undefined): Promise<void>;
  accounts(owner: Owner): Promise<Accounts>;
  /** Returns the user's usage of the last `days` days, newest first. */
  usage(owner: Owner, days: number): Promise<UsageRow[]>;
  /** Returns the usage of all users of the tenant in the last `days` days. */
  tenantUsage(tenant: string, days: number): Promise<TenantUsage>;
}

/** The counters for reservations and spending of model calls. */
export type SpendingStore = Pick<
  QuotaStore,
  "reserve" | "extend" | "settle" | "accounts" | "usage" | "tenantUsage"
>;

/** Counts tokens for budgets. Cached input counts. */
export const tokensOf = ({ input_tokens, output_tokens }: Usage) => input_tokens + output_tokens;

/** Sorts by day, newest first, then by name. */
export function sortedRows(rows: readonly UsageRow[]): UsageRow[] {
  const rank = ({ agent, model }: UsageRow) => JSON.stringify([agent, model]);
  return rows.toSorted((a, b) => (a.day === b.day ? (rank(a) < rank(b) ? -1 : 1) : a.day > b.day ? -1 : 1));
}

/** Returns the total usage. */
export function sumOf(all: readonly UsageTotals[]): UsageTotals {
  const sum = (key: Exclude<keyof UsageTotals, "estimated">) =>
    all.reduce((total, used) => total + used[key], 0);
  return {
    calls: sum("calls"),
    cost: sum("cost"),
    input_tokens: sum("input_tokens"),
    output_tokens: sum("output_tokens"),
    cache_read_tokens: sum("cache_read_tokens"),
    cache_write_tokens: sum("cache_write_tokens"),
    ...(all.some(({ estimated }) => estimated) ? { estimated: true } : {}),
  };
}

/** Returns the users in the form of `TenantUsage`. Expects one row per user. */
export function dearestUsers(users: readonly UserUsage[]): UserUsage[] {
  const named = users
    .filter(({ user }) => user !== undefined)
    .toSorted(
      (a, b) => b.cost - a.cost || tokensOf(b) - tokensOf(a) || ((a.user ?? "") < (b.user ?? "") ? -1 : 1),
    );
  const rest = [...users.filter(({ user }) => user === undefined), ...named.slice(MAX_USERS)];
  return [...named.slice(0, MAX_USERS), ...(rest.length > 0 ? [sumOf(rest)] : [])];
}
