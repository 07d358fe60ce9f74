// Quotas in Redis, for all processes that use it. What was used stays for a hundred days, what is held or reserved for
// its time.

import { randomId } from "../../lib/random-id.ts";
import {
  dayOf,
  endOf,
  firstDay,
  firstKeptDay,
  monthOf,
  neededOf,
  RATE_SLACK_MS,
  RATE_WINDOW_MS,
  refusedFor,
  requestMs,
  startOfDay,
} from "../../quotas/rules.ts";
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
  type QuotaScope,
  type QuotaStore,
  RESOURCES,
  SCOPES,
  sortedRows,
  sumOf,
  tokensOf,
  USAGE_DAYS,
  type UsageRow,
  type Used,
  type UserUsage,
} from "../../quotas/store.ts";
import type { Connection } from "./connection.ts";
import { DEDUPE_TTL_MS, heldKeys, ownerTag, quotaKeys, settledKey, storedKeys } from "./keys.ts";
import {
  type AccountsReply,
  countHeld,
  type DAY,
  extendReserved,
  hold,
  MARK,
  type OtherDay,
  readAccounts,
  readStored,
  readUsage,
  releaseHeld,
  reserve,
  setStored,
  settleCall,
  takeRequest,
} from "./quota-scripts.ts";

const KEPT_MS = USAGE_DAYS * 86_400_000;

export function redisQuotas(redis: Pick<Connection, "run" | "runUntilLeaseEnds">): QuotaStore {
  /** How far Redis's clock is ahead of this process's, as far as is known. */
  let ahead = 0;

  return {
    async take(owner, { tenant, user }) {
      const steps = { step: requestMs(tenant) ?? "", own_step: requestMs(user) ?? "" };
      const args = { ...steps, window: RATE_WINDOW_MS, slack: RATE_SLACK_MS };
      const [over = "", ownOver = ""] = await redis.run(takeRequest, quotaKeys(owner), args);
      const wait = (ms: string) => (ms === "" ? undefined : Number(ms));
      return refusedFor({ tenant: wait(over), user: wait(ownOver) });
    },

    async hold(owner, { thing, id, ms, makingMs, longestMs }, most) {
      const life = { ms, making: makingMs ?? "", longest: longestMs ?? "" };
      const args = { id, user: ownerTag(owner), ...life, ...limitsOf(most) };
      const reply = await redis.run(hold, heldKeys(owner, thing), args);
      return typeof reply === "number" ? scopeAt(reply) : reply;
    },

    async release(owner, thing, id, makingMs) {
      const args = { id, user: ownerTag(owner), making: makingMs ?? "" };
      await redis.run(releaseHeld, heldKeys(owner, thing), args);
    },

    async setStored(owner, { id, bytes, ms }, most) {
      const args = { id, user: ownerTag(owner), bytes, ms, ...limitsOf(most) };
      const full = await redis.run(setStored, storedKeys(owner), args);
      return full === null ? undefined : scopeAt(full);
    },

    async stored(owner) {
      const [tenant, user] = await redis.run(readStored, storedKeys(owner), { user: ownerTag(owner) });
      return { tenant, user };
    },

    async held(owner) {
      const counts = await Promise.all(
        RESOURCES.map((thing) => redis.run(countHeld, heldKeys(owner, thing), {})),
      );
      const at = (level: 0 | 1) => {
        const [runs = 0, streams = 0, threads = 0] = counts.map((count) => count[level]);
        return { runs, streams, threads };
      };
      return { tenant: at(0), user: at(1) };
    },

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
      // Those of the tenant are the same for all of its users.
      const { tenant_usage, users } = quotaKeys({ tenant, user: "" });
      const [rows, byUser] = await Promise.all([usageIn(tenant_usage, days), usageIn(users, days)]);
      return { rows: sortedRows(rows.map(rowOf)), users: dearestUsers(usersOf(byUser)) };
    },
  };

  /** Asks with the day of Redis's clock; once more when that is not the day that it was taken for. */
  async function onDay<Reply>(ask: (day: DayArgs) => Promise<Reply | OtherDay>): Promise<Reply> {
    let now = Date.now() + ahead;
    for (;;) {
      const reply = await ask(dayArgs(now));
      if (!isOtherDay(reply)) return reply;
      now = Number(reply[0]);
      ahead = now - Date.now();
    }
  }

  /** The counters of a hash since the first of `days`. */
  async function usageIn(usage: string, days: number): Promise<Counted[]> {
    const [time, ...found] = await redis.run(readUsage, { usage }, {});
    const first = firstDay(Number(time), days);
    const all: Counted[] = [];
    const marks = new Set<string>();
    for (let at = 0; at < found.length; at += 2) {
      const [name = "", numbers = ""] = found.slice(at, at + 2);
      const [day, rest] = [name.slice(0, MARK.length), name.slice(MARK.length)];
      // Only `settle` writes these.
      if (day === MARK) marks.add((JSON.parse(rest) as [string, string]).join(""));
      else if (day >= first) all.push({ day, name: rest, used: usedOf(numbers) });
    }
    const marked = (used: Used): Used => ({ ...used, estimated: true });
    return all.map((each) => (marks.has(each.day + each.name) ? { ...each, used: marked(each.used) } : each));
  }
}

/** A counter of a day. */
interface Counted {
  readonly day: string;
  readonly name: string;
  readonly used: Used;
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

const limitsOf = ({ tenant, user }: PerScope<number | undefined>) => ({
  most: tenant ?? "",
  own_most: user ?? "",
});

/** What a script names by its place, from 1 on. */
function scopeAt(place: number): QuotaScope {
  const scope = SCOPES[place - 1];
  if (!scope) throw new Error(`There is no scope ${place}.`);
  return scope;
}

/** The amounts of a scope as `accounts()` lists them; before those of the tenant is the time. */
const AMOUNTS = ["day tokens", "day cost", "month tokens", "month cost", "reserved tokens", "reserved cost"];

/** As `reserve` takes them. */
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
  // In the order of `AMOUNTS`.
  const at = (from: number) => ({ tokens: Number(amounts[from]), cost: Number(amounts[from + 1]) });
  const account = (from: number): Account => ({
    day: at(from),
    month: at(from + 2),
    reserved: at(from + 4),
  });
  return { now: Number(now), tenant: account(0), user: account(6) };
}

function rowOf({ day, name, used }: Counted): UsageRow {
  // Only `settle` writes these.
  const [agent, model] = JSON.parse(name) as [string, string];
  return { ...used, day, agent, model };
}

/** A row for each user, whose days are added up. */
function usersOf(counted: readonly Counted[]): UserUsage[] {
  const days = Map.groupBy(counted, ({ name }) => name);
  return [...days].map(([user, all]) => {
    const used = sumOf(all.map(({ used }) => used));
    return user === "" ? used : { ...used, user };
  });
}

function usedOf(numbers: string): Used {
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
