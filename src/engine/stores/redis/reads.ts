// Reads threads, runs and deferred calls from Redis.

import { isSettled, type RunRecord } from "../../../agent/core/records.ts";
import type { Lease } from "../../../agent/core/stores.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { leaseLost } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import { badCursor, pageOf } from "../page.ts";
import type { Lookups } from "../thread-head.ts";
import type { ThreadChanges } from "./changes.ts";
import type { StoreContext } from "./context.ts";
import { threadKeys, threadTag } from "./keys.ts";
import { inboxOf, type RedisView, runOf } from "./records.ts";
import { findBegunRun, findPlace, inspectLease, listRuns, renewLease } from "./thread-scripts.ts";
import { redisThreads } from "./threads.ts";

export function redisReads(
  context: StoreContext,
  { load, keep }: ThreadChanges,
): Pick<Kernel<unknown>, "runs" | "threads" | "deferredCalls"> {
  const { redis, limits, retention, runSchedule, calls, writer } = context;
  const { leaseMs } = limits;

  return {
    runs: {
      waiting: () => runSchedule.due(),

      async get(owner, threadId, run) {
        const view = await read(owner, threadId, { run });
        return seen(owner, view.run?.record);
      },

      async known(owner, threadId, key) {
        const view = await read(owner, threadId, { key });
        return seen(owner, view.known);
      },

      async active(owner, threadId) {
        const view = await read(owner, threadId, { next: true });
        return seen(owner, view.head?.active && view.next?.record);
      },

      async list(owner, threadId, { limit, cursor }) {
        const args = { cursor: cursor ?? "", limit: limit + 1 };
        const keys = threadKeys(threadTag(owner, threadId));
        const found = cursor === "" ? null : await redis.run(listRuns, keys, args);
        if (!found) throw badCursor(cursor ?? "");
        retention.used(owner, threadId, found[1]);
        const runs = found[0].map((reply) => runOf(threadId, reply));
        return pageOf(runs, limit, ({ id }) => id);
      },

      async begun(owner, threadId, after) {
        const place = after === undefined ? -1 : after === "" ? 0 : "";
        const keys = threadKeys(threadTag(owner, threadId));
        const found = await redis.run(findBegunRun, keys, { place, after: after ?? "" });
        if (!found) return undefined;
        retention.used(owner, threadId, found[1]);
        return seen(owner, runOf(threadId, found[0]));
      },

      async place(owner, threadId, run) {
        const found = await redis.run(findPlace, threadKeys(threadTag(owner, threadId)), { sought: run });
        if (!found) return undefined;
        retention.used(owner, threadId, found[1]);
        return found[0];
      },

      subscribe: (listener) => calls.subscribe(listener),

      async inbox(lease) {
        const args = { run: lease.run_id, epoch: lease.epoch };
        const found = await redis.runUntilLeaseEnds(inspectLease, keysOf(lease), args);
        if (!found) throw leaseLost(lease);
        return inboxOf(found[2]);
      },

      async renew(lease) {
        const args = { run: lease.run_id, epoch: lease.epoch, lease_ms: leaseMs };
        const stop = await redis.run(renewLease, keysOf(lease), args);
        if (stop === "lost") {
          writer.forget(lease);
          throw leaseLost(lease);
        }
        runSchedule.ensure(lease.owner, threadTag(lease.owner, lease.thread_id));
        return stop === null ? {} : { stop };
      },
    },

    threads: redisThreads(context, (owner, id, view) => keep(threadTag(owner, id), view)),

    deferredCalls: {
      async get({ owner, thread_id, call_id }) {
        return (await load({ tag: threadTag(owner, thread_id) }, { call: call_id })).call;
      },
    },
  };

  async function read(owner: Owner, id: string, lookups: Lookups): Promise<RedisView> {
    const view = await load({ tag: threadTag(owner, id) }, lookups);
    if (view.head) retention.used(owner, id, view.life);
    return view;
  }

  /** Must be called for each run that was read. If its thread's schedule was lost, schedules the thread again. */
  function seen(owner: Owner, run: RunRecord | undefined): RunRecord | undefined {
    if (run && !isSettled(run.status)) runSchedule.ensure(owner, threadTag(owner, run.thread_id));
    return run;
  }
}

const keysOf = ({ owner, thread_id }: Lease) => threadKeys(threadTag(owner, thread_id));
