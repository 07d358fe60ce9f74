// The port to the counters of tenants and users, shared by all processes of a deployment. Time is the store's; days and
// months are UTC. Cost is in millionths of the currency.
//
// Runs, streams and threads are held: each counts until it is released, or its hold expires because its process died.
// A model call reserves what it may use, and settles what it used.

import type { Usage } from "../../agent/core/message.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Quota } from "./config.ts";

/** Everything counts for the tenant and for its user. */
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
  /** When it was read, in ms since 1970. */
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

/** What model calls have used together. */
export interface Used extends Omit<Usage, "cache_hit_ratio"> {
  readonly calls: number;
  readonly cost: number;
}

/** The usage of a model by an agent on one day. */
export interface UsageRow extends Used {
  /** `2026-11-22` */
  readonly day: string;
  readonly agent: string;
  readonly model: string;
}

/** The usage of one user of a tenant; without `user`, that of all who have no row of their own. */
export interface UserUsage extends Used {
  readonly user?: string;
}

/** The usage of all users of a tenant. */
export interface TenantUsage {
  /** Newest first. */
  readonly rows: UsageRow[];
  /** The `MAX_USERS` users who cost most, dearest first; last, if there are more, the rest without a name. */
  readonly users: UserUsage[];
}

/** Days for which usage is kept, today included. */
export const USAGE_DAYS = 100;
/** Rows per day of a user, and of a tenant; further agents and models are counted as `OTHER`. */
export const MAX_ROWS = 64;
export const OTHER = "other";
/** Users of a tenant who are counted by name on a day, the first ones; the rest are counted together. */
export const MAX_USERS = 256;

export interface HeldResource {
  readonly thing: Resource;
  readonly id: string;
  readonly ms: number;
  /** How long anything of this kind is held at most. What ends later was held before the clock was set back, and ends then. */
  readonly longestMs?: number | undefined;
}

export interface QuotaStore {
  /**
   * Counts one request against a token bucket that holds a minute's requests. Returns undefined when it is allowed; else
   * the scope that is exhausted and the wait for its next request. An undefined limit is none.
   */
  take(
    owner: Owner,
    perMinute: PerScope<number | undefined>,
  ): Promise<{ readonly full: QuotaScope; readonly wait_ms: number } | undefined>;
  /**
   * `new`: it counts from now on, for `ms` unless it is released; with `makingMs` for that time, in which it is still new when it is
   * held again. `kept`: it counted already, for `ms` from now. Else the scope whose limit is reached. An undefined
   * limit is none.
   */
  hold(
    owner: Owner,
    held: HeldResource & { readonly makingMs?: number | undefined },
    most: PerScope<number | undefined>,
  ): Promise<"new" | "kept" | QuotaScope>;
  /** With `makingMs` only what is still new. */
  release(owner: Owner, thing: Resource, id: string, makingMs?: number): Promise<void>;
  /**
   * Counts `bytes` as stored under `id` for `ms` from now, in place of what was counted before; 0 ends that. Returns the scope
   * whose limit would be exceeded, with no effect; a smaller number is never refused. An undefined limit is no limit.
   */
  setStored(
    owner: Owner,
    stored: { readonly id: string; readonly bytes: number; readonly ms: number },
    most: PerScope<number | undefined>,
  ): Promise<QuotaScope | undefined>;
  /** The bytes that are stored. */
  stored(owner: Owner): Promise<PerScope<number>>;
  held(owner: Owner): Promise<PerScope<Readonly<Record<Resource, number>>>>;
  /**
   * Reserves amounts for one call if every budget, less what is spent and reserved, has room for them and something
   * left. The reservation expires after `ms`, and no other later: one that would was made before the clock was set back. `id` is new.
   */
  reserve(
    owner: Owner,
    reservation: { readonly id: string; readonly amounts: Amounts; readonly ms: number },
    budgets: PerScope<Budget>,
  ): Promise<{ readonly isGranted: boolean; readonly accounts: Accounts }>;
  /** Those of the tenant's reservations with these ids that have not expired last for `ms` from now. */
  extend(tenant: string, ids: readonly string[], ms: number): Promise<void>;
  /** Ends the reservation, unless it has expired, and counts the spending, if any. */
  settle(owner: Owner, id: string, spending: Spending | undefined): Promise<void>;
  accounts(owner: Owner): Promise<Accounts>;
  /** The user's usage of the last `days`, newest first. */
  usage(owner: Owner, days: number): Promise<UsageRow[]>;
  /** The usage of all users of the tenant in the last `days`. */
  tenantUsage(tenant: string, days: number): Promise<TenantUsage>;
}

/** The part of the counters that reserves and counts what calls use. */
export type SpendingStore = Pick<
  QuotaStore,
  "reserve" | "extend" | "settle" | "accounts" | "usage" | "tenantUsage"
>;

/** Tokens as budgets count them; cached input counts. */
export const tokensOf = ({ input_tokens, output_tokens }: Usage) => input_tokens + output_tokens;

/** Newest day first, then by name. */
export function sortedRows(rows: readonly UsageRow[]): UsageRow[] {
  const rank = ({ agent, model }: UsageRow) => JSON.stringify([agent, model]);
  return rows.toSorted((a, b) => (a.day === b.day ? (rank(a) < rank(b) ? -1 : 1) : a.day > b.day ? -1 : 1));
}

/** What all of them have used together. */
export function sumOf(all: readonly Used[]): Used {
  const sum = (key: Exclude<keyof Used, "estimated">) => all.reduce((total, used) => total + used[key], 0);
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

/** As `TenantUsage` has them; one row for each user comes in. */
export function dearestUsers(users: readonly UserUsage[]): UserUsage[] {
  const named = users
    .filter(({ user }) => user !== undefined)
    .toSorted(
      (a, b) => b.cost - a.cost || tokensOf(b) - tokensOf(a) || ((a.user ?? "") < (b.user ?? "") ? -1 : 1),
    );
  const rest = [...users.filter(({ user }) => user === undefined), ...named.slice(MAX_USERS)];
  return [...named.slice(0, MAX_USERS), ...(rest.length > 0 ? [sumOf(rest)] : [])];
}
