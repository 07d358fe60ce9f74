// The port to what tenants and users have used and use at the moment, shared by all processes of a deployment.
// Time is the store's own; days and months are those of UTC. Cost is in millionths of the currency.
//
// What is there for a while (runs, streams, threads) is held: each counts until it is released, or its time is over
// because whoever held it died. What a model call will use is reserved before it, and settled with what it used.

import type { Owner } from "../core/ids.ts";
import type { Usage } from "../core/message.ts";
import type { Quota } from "./config.ts";

/** Everything is counted twice: for the tenant as a whole, and for its user. */
export const SCOPES = ["tenant", "user"] as const;
export type QuotaScope = (typeof SCOPES)[number];
export type PerScope<T> = Readonly<Record<QuotaScope, T>>;

export const RESOURCES = ["runs", "streams", "threads"] as const;
export type Resource = (typeof RESOURCES)[number];

export interface Amounts {
  readonly tokens: number;
  readonly cost: number;
}

/** What a tenant or a user has used, and what is reserved for calls that are under way. */
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

/** What was spent on one call. */
export interface Spending {
  readonly agent: string;
  readonly model: string;
  readonly usage: Usage;
  readonly cost: number;
}

/** What the calls of an agent to a model used on a day. */
export interface UsageRow extends Usage {
  /** `2026-11-22` */
  readonly day: string;
  readonly agent: string;
  readonly model: string;
  readonly calls: number;
  readonly cost: number;
}

/** For how many days usage is kept, today included. */
export const USAGE_DAYS = 100;
/** Agents and models that are told apart in one user's day; what comes then is put together as `OTHER`. */
export const MAX_ROWS = 64;
export const OTHER = "other";

export interface QuotaStore {
  /**
   * Counts one request, of at most so many a minute; after a rest all of a minute's may come at once. Else: which level
   * has had its share, and in how many ms the next request will be taken. Undefined: not limited.
   */
  take(
    owner: Owner,
    perMinute: PerScope<number | undefined>,
  ): Promise<{ readonly full: QuotaScope; readonly wait_ms: number } | undefined>;
  /**
   * `new`: it counts from now on, for `ms` unless it is released. `kept`: it did already, its time begins anew. Else the
   * level that has as many as it may. Undefined: not limited.
   */
  hold(
    owner: Owner,
    held: { readonly thing: Resource; readonly id: string; readonly ms: number },
    most: PerScope<number | undefined>,
  ): Promise<"new" | "kept" | QuotaScope>;
  release(owner: Owner, thing: Resource, id: string): Promise<void>;
  held(owner: Owner): Promise<PerScope<Readonly<Record<Resource, number>>>>;
  /**
   * Reserves amounts for one call while of every budget something is left, reservations deducted: so all calls together
   * go past it by one at most. After `ms` the reservation is void. `id` is new.
   */
  reserve(
    owner: Owner,
    reservation: { readonly id: string; readonly amounts: Amounts; readonly ms: number },
    budgets: PerScope<Budget>,
  ): Promise<{ readonly isGranted: boolean; readonly accounts: Accounts }>;
  /** Ends a reservation, if there still is one, and counts what was spent, if anything was. */
  settle(owner: Owner, id: string, spending: Spending | undefined): Promise<void>;
  accounts(owner: Owner): Promise<Accounts>;
  /** The user's own, of today and the days before, newest first. */
  usage(owner: Owner, days: number): Promise<UsageRow[]>;
}

/** Whether something is left of every budget. */
export function hasRoom({ reserved, ...spent }: Account, budget: Budget): boolean {
  return BUDGETS.every(({ limit, period, unit }) => {
    const most = budget[limit];
    return most === undefined || spent[period][unit] + reserved[unit] < most;
  });
}

const DAY_MS = 86_400_000;

export const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);
export const monthOf = (time: number) => dayOf(time).slice(0, 7);
/** The first day of so many, the last of which is now. */
export const firstDay = (time: number, days: number) => dayOf(time - (days - 1) * DAY_MS);

/** When the day or the month ends. */
export function endOf(period: "day" | "month", time: number): number {
  const date = new Date(time);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return period === "day" ? Date.UTC(year, month, date.getUTCDate() + 1) : Date.UTC(year, month + 1);
}

/** Tokens as budgets count them: what comes from a cache is input, too. */
export const tokensOf = ({ input_tokens, output_tokens }: Usage) => input_tokens + output_tokens;

/** Newest day first, then by name. */
export function sortedRows(rows: readonly UsageRow[]): UsageRow[] {
  const rank = ({ agent, model }: UsageRow) => JSON.stringify([agent, model]);
  return rows.toSorted((a, b) => (a.day === b.day ? (rank(a) < rank(b) ? -1 : 1) : a.day > b.day ? -1 : 1));
}
