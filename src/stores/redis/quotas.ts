// Quotas in Redis, for all processes that use it. What was used stays for a hundred days, what is held or reserved for
// its time.

import { randomId } from "../../lib/random-id.ts";
import {
  type Account,
  type Accounts,
  type Budget,
  firstDay,
  MAX_ROWS,
  OTHER,
  type QuotaStore,
  RESOURCES,
  sortedRows,
  tokensOf,
  USAGE_DAYS,
  type UsageRow,
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
        ...{ row: JSON.stringify([agent, model]), other: JSON.stringify([OTHER, OTHER]) },
        ...{ most_rows: MAX_ROWS, kept_ms: KEPT_MS, asking: DEDUPE_TTL_MS },
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
      const [time, ...found] = await redis.run(readUsage, quotaKeys(owner), {});
      const first = firstDay(Number(time), days);
      const rows: UsageRow[] = [];
      for (let at = 0; at < found.length; at += 2) rows.push(rowOf(found[at] ?? "", found[at + 1] ?? ""));
      return sortedRows(rows.filter(({ day }) => day >= first));
    },
  };
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

/** `2026-11-22["agent","model"]` */
function rowOf(name: string, numbers: string): UsageRow {
  // Only `settle` writes these.
  const [agent, model] = JSON.parse(name.slice(10)) as [string, string];
  const [
    calls = 0,
    input_tokens = 0,
    output_tokens = 0,
    cache_read_tokens = 0,
    cache_write_tokens = 0,
    cost = 0,
  ] = numbers.split(" ").map(Number);
  return {
    ...{ day: name.slice(0, 10), agent, model, calls },
    ...{ input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost },
  };
}
