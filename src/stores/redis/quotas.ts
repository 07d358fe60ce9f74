// Quotas in Redis, for all processes that use it. What was used stays for a hundred days, what is held or reserved for
// its time.

import { randomId } from "../../lib/random-id.ts";
import {
  type Account,
  type Accounts,
  type Budget,
  dearestUsers,
  firstDay,
  MAX_ROWS,
  MAX_USERS,
  OTHER,
  type QuotaStore,
  RESOURCES,
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
  hold,
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
  return {
    async take(owner, { tenant, user }) {
      const args = { most: tenant ?? "", own_most: user ?? "" };
      const [full, wait] = await redis.run(takeRequest, quotaKeys(owner), args);
      return full === "tenant" || full === "user" ? { full, wait_ms: Number(wait) } : undefined;
    },

    hold(owner, { thing, id, ms }, most) {
      const args = { id, user: ownerTag(owner), ms, most: most.tenant ?? "", own_most: most.user ?? "" };
      return redis.run(hold, heldKeys(owner, thing), args);
    },

    async release(owner, thing, id) {
      await redis.run(releaseHeld, heldKeys(owner, thing), { id, user: ownerTag(owner) });
    },

    async setStored(owner, { id, bytes, ms }, most) {
      const limits = { most: most.tenant ?? "", own_most: most.user ?? "" };
      const args = { id, user: ownerTag(owner), bytes, ms, ...limits };
      return (await redis.run(setStored, storedKeys(owner), args)) ?? undefined;
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
      const args = { id, user: ownerTag(owner), ...amounts, ms };
      const limits = [...limitsOf(budgets.tenant), ...limitsOf(budgets.user)];
      const [granted, reply] = await redis.run(reserve, quotaKeys(owner), args, limits);
      return { isGranted: granted === 1, accounts: accountsOf(reply) };
    },

    async settle(owner, id, spending) {
      const { agent = "", model = "", usage, cost = 0 } = spending ?? {};
      const args = {
        ...{ id, cost, tokens: usage ? tokensOf(usage) : 0 },
        row: JSON.stringify([agent, model]),
        other: JSON.stringify([OTHER, OTHER]),
        name: owner.user,
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
      await redis.runUntilLeaseEnds(settleCall, keys, args, numbers.map(String));
    },

    async accounts(owner) {
      return accountsOf(await redis.run(readAccounts, quotaKeys(owner), { user: ownerTag(owner) }));
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

  /** The counters of a hash since the first of `days`. */
  async function usageIn(usage: string, days: number): Promise<Counted[]> {
    const [time, ...found] = await redis.run(readUsage, { usage }, {});
    const first = firstDay(Number(time), days);
    const all: Counted[] = [];
    for (let at = 0; at < found.length; at += 2) {
      const name = found[at] ?? "";
      if (name.slice(0, 10) >= first)
        all.push({ day: name.slice(0, 10), name: name.slice(10), used: usedOf(found[at + 1] ?? "") });
    }
    return all;
  }
}

/** A counter of a day. */
interface Counted {
  readonly day: string;
  readonly name: string;
  readonly used: Used;
}

/** In the order of `accounts()`. */
const limitsOf = ({ tokens_per_day, cost_per_day, tokens_per_month, cost_per_month }: Budget) =>
  [tokens_per_day, cost_per_day, tokens_per_month, cost_per_month].map((most) => String(most ?? ""));

function accountsOf([now, ...amounts]: AccountsReply): Accounts {
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
