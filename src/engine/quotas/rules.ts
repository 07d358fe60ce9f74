// The rules of quotas, defined once for every store. Stores that count in scripts or statements receive the numbers
// that these functions compute, and only add and compare them.

import {
  type Account,
  type Accounts,
  type Amounts,
  BUDGETS,
  type Budget,
  type PerScope,
  type QuotaScope,
  SCOPES,
  USAGE_DAYS,
} from "./store.ts";

/** The number of milliseconds by which requests may run ahead of their rate. */
export const RATE_WINDOW_MS = 60_000;
/** A hundredth of a millisecond, to allow for rounding errors in sums of fractions. */
export const RATE_SLACK_MS = 0.01;

/** Returns the milliseconds that one more request adds at a rate, or undefined if there is no rate. */
export const requestMs = (perMinute: number | undefined): number | undefined =>
  perMinute === undefined ? undefined : RATE_WINDOW_MS / perMinute;

/**
 * Admits one more request, or refuses it. `ends` is the time at which all requests so far are paid off at an even rate.
 * It may be at most a minute ahead. Returns the new times of the scopes with a rate, or a refusal, which changes
 * nothing.
 */
export function takeRequest(
  ends: PerScope<number | undefined>,
  perMinute: PerScope<number | undefined>,
  now: number,
): { readonly refused: RateRefusal } | { readonly next: PerScope<number | undefined> } {
  const endAfter = (scope: QuotaScope) => {
    const step = requestMs(perMinute[scope]);
    const known = ends[scope] ?? 0;
    // No request could have been admitted this far ahead, so the clock was set back.
    const isPossible = known <= now + RATE_WINDOW_MS + RATE_SLACK_MS;
    return step === undefined ? undefined : Math.max(isPossible ? known : 0, now) + step;
  };
  const next = { tenant: endAfter("tenant"), user: endAfter("user") };
  const wait = (end: number | undefined) => (end === undefined ? undefined : end - RATE_WINDOW_MS - now);
  const refused = refusedFor({ tenant: wait(next.tenant), user: wait(next.user) });
  return refused ? { refused } : { next };
}

export interface RateRefusal {
  readonly full: QuotaScope;
  readonly wait_ms: number;
}

/** Returns the refusal of a request that would be allowed after these waits. It names the scope with the longest wait. */
export function refusedFor(waits: PerScope<number | undefined>): RateRefusal | undefined {
  const [longest] = SCOPES.map((full) => ({ full, wait: waits[full] ?? 0 })).toSorted(
    (a, b) => b.wait - a.wait,
  );
  if (!longest || longest.wait <= RATE_SLACK_MS) return undefined;
  return { full: longest.full, wait_ms: Math.ceil(longest.wait) };
}

/**
 * Acquires or renews a hold on a resource. Returns whether the resource is new, and the time until which it
 * counts.
 */
export function heldUntil(
  ends: number | undefined,
  now: number,
  { ms, makingMs }: { readonly ms: number; readonly makingMs?: number | undefined },
): { readonly isNew: boolean; readonly ends: number } {
  const isNew = ends === undefined || ends <= now + (makingMs ?? 0);
  return { isNew, ends: now + (isNew ? (makingMs ?? ms) : ms) };
}

/** Returns the first scope whose limit `more` would exceed. Zero never exceeds a limit. */
export function exceeded(
  used: PerScope<number>,
  more: number,
  most: PerScope<number | undefined>,
): QuotaScope | undefined {
  return SCOPES.find((scope) => more > 0 && used[scope] + more > (most[scope] ?? Number.POSITIVE_INFINITY));
}

/**
 * Returns the minimum that a budget must have left for a reservation. This is at least 1, even if the reservation
 * itself is zero.
 */
export const neededOf = ({ tokens, cost }: Amounts): Amounts => ({
  tokens: Math.max(1, tokens),
  cost: Math.max(1, cost),
});

/** Returns true if every budget, minus spending and reservations, can cover one more reservation. */
export function hasRoom(accounts: PerScope<Account>, budgets: PerScope<Budget>, amounts: Amounts): boolean {
  const needed = neededOf(amounts);
  return SCOPES.every((scope) => {
    const { reserved, ...spent } = accounts[scope];
    return BUDGETS.every(({ limit, period, unit }) => {
      const most = budgets[scope][limit] ?? Number.POSITIVE_INFINITY;
      return spent[period][unit] + reserved[unit] + needed[unit] <= most;
    });
  });
}

/** Returns the accounts with one more reservation. */
export function withReserved({ now, tenant, user }: Accounts, { tokens, cost }: Amounts): Accounts {
  const add = ({ reserved, ...spent }: Account): Account => ({
    ...spent,
    reserved: { tokens: reserved.tokens + tokens, cost: reserved.cost + cost },
  });
  return { now, tenant: add(tenant), user: add(user) };
}

/** Returns true if usage gets its own row, because the row exists or there are fewer than `most` rows. */
export const hasOwnRow = (isThere: boolean, rows: number, most: number): boolean => isThere || rows < most;

const DAY_MS = 86_400_000;

export const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);
export const monthOf = (time: number) => dayOf(time).slice(0, 7);
/** Returns the first of `days` days that end with the day of `time`. */
export const firstDay = (time: number, days: number) => dayOf(time - (days - 1) * DAY_MS);
/** Returns the first day whose usage is kept. */
export const firstKeptDay = (time: number) => firstDay(time, USAGE_DAYS);

export function startOfDay(time: number): number {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate());
}

/** Returns the end of the day or the month. */
export function endOf(period: "day" | "month", time: number): number {
  const date = new Date(time);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return period === "day" ? Date.UTC(year, month, date.getUTCDate() + 1) : Date.UTC(year, month + 1);
}
