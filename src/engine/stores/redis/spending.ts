// Budgets and usage in Redis, counted by the days of its clock.

import { randomId } from "../../../lib/random-id.ts";
import { dayOf, endOf, firstDay, firstKeptDay, monthOf, neededOf, startOfDay } from "../../quotas/rules.ts";
import {
  type Account,
  type Accounts,
  type Amounts,
  BUDGETS,
  type Budget,
  dearestUsers,
  MAX_ROWS,
  MAX_USERS,
  OTHER,
  type PerScope,
  SCOPES,
  type SpendingStore,
  sortedRows,
  sumOf,
  tokensOf,
  USAGE_DAYS,
  type UsageRow,
  type UsageTotals,
  type UserUsage,
} from "../../quotas/store.ts";
import type { RedisConnection } from "./connection.ts";
import { DEDUPE_TTL_MS, ownerTag, quotaKeys, settledKey } from "./keys.ts";
import {
  type AccountsReply,
  type DAY,
  extendReserved,
  MARK,
  type OtherDay,
  readAccounts,
  readUsage,
  reserve,
  settleCall,
} from "./spending-scripts.ts";

const KEPT_MS = USAGE_DAYS * 86_400_000;

export function redisSpending(redis: Pick<RedisConnection, "run" | "runUntilLeaseEnds">): SpendingStore {
  /** The number of milliseconds by which Redis's clock is known to be ahead of this process's clock. */
  let ahead = 0;

  return {
    async reserve(owner, { id, amounts, ms }, budgets) {
      const call = { id, user: ownerTag(owner), ...amounts, ms };
      const limits = budgetArgs(budgets, neededOf(amounts));
      const [granted, accounts] = await onDay((day) =>
        redis.run(reserve, quotaKeys(owner), { ...call, ...day }, limits),
      );
      return { isGranted: granted === 1, accounts: accountsOf(accounts) };
    },

    async extend(tenant, ids, ms) {
      await redis.run(extendReserved, quotaKeys({ tenant, user: "" }), { ms }, ids);
    },

    async settle(owner, id, spending) {
      const { agent = "", model = "", usage, cost = 0 } = spending ?? {};
      const args = {
        ...{ id, cost, tokens: usage ? tokensOf(usage) : 0 },
        row: JSON.stringify([agent, model]),
        other: JSON.stringify([OTHER, OTHER]),
        name: owner.user,
        estimated: usage?.estimated ? 1 : 0,
        most_users: MAX_USERS,
        most_rows: MAX_ROWS,
        kept_ms: KEPT_MS,
        asking: DEDUPE_TTL_MS,
      };
      const numbers = usage
        ? [
            1,
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            cost,
          ]
        : [];
      const keys = { ...quotaKeys(owner), settled: settledKey(owner, randomId()) };
      await onDay((day) =>
        redis.runUntilLeaseEnds(settleCall, keys, { ...args, ...day }, numbers.map(String)),
      );
    },

    async accounts(owner) {
      const user = ownerTag(owner);
      return accountsOf(await onDay((day) => redis.run(readAccounts, quotaKeys(owner), { user, ...day })));
    },

    async usage(owner, days) {
      const rows = await usageIn(quotaKeys(owner).usage, days);
      return sortedRows(rows.map(rowOf));
    },

    async tenantUsage(tenant, days) {
      // The tenant's keys are the same for all of its users.
      const { tenant_usage, users } = quotaKeys({ tenant, user: "" });
      const [rows, byUser] = await Promise.all([usageIn(tenant_usage, days), usageIn(users, days)]);
      return { rows: sortedRows(rows.map(rowOf)), users: dearestUsers(usersOf(byUser)) };
    },
  };

  /** Runs `ask` with the current day of Redis's clock. If that was the wrong day, runs it once more. */
  async function onDay<Reply>(ask: (day: DayArgs) => Promise<Reply | OtherDay>): Promise<Reply> {
    let now = Date.now() + ahead;
    for (;;) {
      const reply = await ask(dayArgs(now));
      if (!isOtherDay(reply)) return reply;
      now = Number(reply[0]);
      ahead = now - Date.now();
    }
  }

  /** Returns the counters of a hash since the first of `days`. */
  async function usageIn(usage: string, days: number): Promise<DayCounter[]> {
    const [time, ...found] = await redis.run(readUsage, { usage }, {});
    const first = firstDay(Number(time), days);
    const all: DayCounter[] = [];
    const marks = new Set<string>();
    for (let at = 0; at < found.length; at += 2) {
      const [name = "", numbers = ""] = found.slice(at, at + 2);
      const [day, rest] = [name.slice(0, MARK.length), name.slice(MARK.length)];
      // Not validated, because only `settle` writes these.
      if (day === MARK) marks.add((JSON.parse(rest) as [string, string]).join(""));
      else if (day >= first) all.push({ day, name: rest, used: usedOf(numbers) });
    }
    const marked = (used: UsageTotals): UsageTotals => ({ ...used, estimated: true });
    return all.map((each) => (marks.has(each.day + each.name) ? { ...each, used: marked(each.used) } : each));
  }
}

/** A counter for one day. */
interface DayCounter {
  readonly day: string;
  readonly name: string;
  readonly used: UsageTotals;
}

type DayArgs = Readonly<Record<(typeof DAY)[number] | "first", string | number>>;

const dayArgs = (now: number): DayArgs => ({
  day: dayOf(now),
  month: monthOf(now),
  next_day: dayOf(endOf("day", now)),
  next_month: monthOf(endOf("month", now)),
  from: startOfDay(now),
  to: endOf("day", now),
  first: firstKeptDay(now),
});

const isOtherDay = (reply: unknown): reply is OtherDay => Array.isArray(reply) && reply.length === 1;

/** The amounts of a scope in the order of `accounts()`. The time precedes the tenant's amounts. */
const AMOUNTS = ["day tokens", "day cost", "month tokens", "month cost", "reserved tokens", "reserved cost"];

/** Returns budgets in the form that `reserve` takes. */
function budgetArgs(budgets: PerScope<Budget>, needed: Amounts): string[] {
  return SCOPES.flatMap((scope, at) => {
    const place = (amount: string) => 2 + at * AMOUNTS.length + AMOUNTS.indexOf(amount);
    return BUDGETS.flatMap(({ limit, period, unit }) => {
      const most = budgets[scope][limit];
      if (most === undefined) return [];
      return [place(`${period} ${unit}`), place(`reserved ${unit}`), needed[unit], most].map(String);
    });
  });
}

function accountsOf([now, ...amounts]: AccountsReply): Accounts {
  // The amounts are in the order of `AMOUNTS`.
  const at = (from: number) => ({ tokens: Number(amounts[from]), cost: Number(amounts[from + 1]) });
  const account = (from: number): Account => ({
    day: at(from),
    month: at(from + 2),
    reserved: at(from + 4),
  });
  return { now: Number(now), tenant: account(0), user: account(6) };
}

function rowOf({ day, name, used }: DayCounter): UsageRow {
  // Not validated, because only `settle` writes these.
  const [agent, model] = JSON.parse(name) as [string, string];
  return { ...used, day, agent, model };
}

/** Returns one row per user, summed over days. */
function usersOf(counted: readonly DayCounter[]): UserUsage[] {
  const days = Map.groupBy(counted, ({ name }) => name);
  return [...days].map(([user, all]) => {
    const used = sumOf(all.map(({ used }) => used));
    return user === "" ? used : { ...used, user };
  });
}

function usedOf(numbers: string): UsageTotals {
  const [
    calls = 0,
    input_tokens = 0,
    output_tokens = 0,
    cache_read_tokens = 0,
    cache_write_tokens = 0,
    cost = 0,
  ] = numbers.split(" ").map(Number);
  return { calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost };
}
