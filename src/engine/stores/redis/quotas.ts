// Quotas in Redis, for all processes that share it. Usage is kept for a hundred days. Holds and reservations are kept
// until they expire.

import { RATE_SLACK_MS, RATE_WINDOW_MS, refusedFor, requestMs } from "../../quotas/rules.ts";
import { type PerScope, type QuotaScope, type QuotaStore, RESOURCES, SCOPES } from "../../quotas/store.ts";
import type { RedisConnection } from "./connection.ts";
import { heldKeys, ownerTag, quotaKeys, storedKeys } from "./keys.ts";
import { countHeld, hold, readStored, releaseHeld, setStored, takeRequest } from "./quota-scripts.ts";
import { redisSpending } from "./spending.ts";

export function redisQuotas(redis: Pick<RedisConnection, "run" | "runUntilLeaseEnds">): QuotaStore {
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

    ...redisSpending(redis),
  };
}

const limitsOf = ({ tenant, user }: PerScope<number | undefined>) => ({
  most: tenant ?? "",
  own_most: user ?? "",
});

/** Returns the scope that a script identifies by its index, starting at 1. */
function scopeAt(place: number): QuotaScope {
  const scope = SCOPES[place - 1];
  if (!scope) throw new Error(`There is no scope ${place}.`);
  return scope;
}
