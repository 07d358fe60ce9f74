// Waits until the replicas have received all writes so far, so that a failover does not lose them. Uses a separate
// connection, because Redis blocks a connection while it waits. Concurrent waits share the next round.

import type { Redis } from "ioredis";
import { withTimeout } from "../shared/outages.ts";
import { missingReplicas } from "./client.ts";
import { script } from "./connection.ts";
import { REPLICATED } from "./keys.ts";

/** The maximum number of milliseconds that Redis waits per request. */
const ROUND_MS = 1_000;
const PAUSE_MS = 50;
const MARK_TTL_MS = 60_000;

export interface Replicas {
  /**
   * Resolves when the replicas have received all earlier writes. Throws `unavailable` if the replicas do not confirm
   * these writes in time.
   */
  confirm(withinMs?: number): Promise<void>;
  close(): void;
}

export const NO_REPLICAS: Replicas = { confirm: async () => {}, close() {} };

/** Waits for `count` replicas, for at most `patienceMs` milliseconds. */
export function createReplicas(client: Redis, count: number, patienceMs: number): Replicas {
  let round: Promise<boolean> | undefined;
  let next: Promise<boolean> | undefined;
  let isClosed = false;

  return {
    async confirm(withinMs = patienceMs) {
      for (const until = performance.now() + withinMs; !(await joined()); )
        if (isClosed || performance.now() >= until) throw missingReplicas(count);
    },
    close() {
      isClosed = true;
      client.disconnect();
    },
  };

  /** Returns true if a later round has found enough replicas. */
  function joined(): Promise<boolean> {
    next ??= (round ?? Promise.resolve()).then(() => {
      next = undefined;
      round = ask();
      return round;
    });
    return next;
  }

  async function ask(): Promise<boolean> {
    try {
      const values = [REPLICATED, "", String(MARK_TTL_MS)];
      const asked = Promise.all([client.eval(mark.text, 1, ...values), client.wait(count, ROUND_MS)]);
      const [, found] = await withTimeout(2 * ROUND_MS, asked);
      return found >= count;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      return false;
    }
  }
}

// Writes a probe. A replica that has this value also has everything that was written before it.
const mark = script<number>()({
  kind: "always",
  keys: ["mark"],
  args: ["ttl"],
  lua: "return redis.call('SET', mark, '', 'PX', ttl) and 1",
});
