// Threads, runs and deferred calls in Redis. What is changed goes through changes.ts.

import type { DueCalls } from "../../core/deferred-calls.ts";
import { isSettled, type RunRecord } from "../../core/records.ts";
import type { Cursor, Lease, LogEntry } from "../../core/stores.ts";
import type { Owner } from "../../protocol/ids.ts";
import { leaseLost } from "../errors.ts";
import type { Due, Kernel, Looked } from "../kernel.ts";
import { badCursor, pageOf } from "../page.ts";
import { canContinue } from "../rules.ts";
import { sharedEvents } from "../shared/events.ts";
import { type Lookups, runAhead } from "../thread-head.ts";
import { type CallPlace, createChanges, type ThreadRef } from "./changes.ts";
import type { StoreContext } from "./context.ts";
import { tenantTag, threadKeys, threadTag, tokenKey } from "./keys.ts";
import { inboxOf, type RedisView, runOf } from "./records.ts";
import type { Schedule, ScheduleEntry } from "./schedule.ts";
import { redisStaging } from "./staging.ts";
import { findBegunRun, findPlace, inspectLease, listRuns, renewLease } from "./thread-scripts.ts";
import { redisThreads } from "./threads.ts";

/** Threads that are checked at once. */
const BATCH_SIZE = 32;
export function redisKernel(context: StoreContext): Kernel<ThreadRef> {
  const { redis, limits, lifetime, runSchedule, callSchedule, calls, writer, pages } = context;
  const { leaseMs } = limits;
  const { change, load, keep, graceMs } = createChanges(context);

  return {
    limits,
    ref: (owner, id) => ({ tag: threadTag(owner, id), owner }),
    change,
    ...redisStaging(context),

    async eachDue<T>({ limit, except }: Due, look: (thread: ThreadRef) => Promise<Looked<T>>) {
      const found: T[] = [];
      // Holders renew their leases first.
      if (graceMs() > 0) return found;
      const left = except.map((tenant) => tenantTag({ tenant }));
      await eachEntry(runSchedule, { limit, except: left }, async (entry) => {
        const looked = await look({ tag: entry.thread, entry });
        if ("until" in looked) await runSchedule.reschedule(entry, looked.until);
        else found.push(looked.found);
        return !("until" in looked);
      });
      return found;
    },

    async logOf(lease) {
      const entries: LogEntry[] = [];
      const { last } = (await pages.look(lease)) ?? { last: 0 };
      let after: Cursor = { seq: Math.max(0, last - limits.eventsPerRun) };
      while (after.seq < last) {
        const page = await pages.read(lease, after);
        entries.push(...(page?.entries ?? []));
        after = page?.entries.at(-1) ?? { seq: last };
      }
      return entries;
    },

    async findCall(tokenHash) {
      const place = await redis.ask((client) => client.get(tokenKey(tokenHash)));
      if (place === null) return undefined;
      // Written by `afterwards`.
      const [, tag, call_id] = JSON.parse(place) as CallPlace;
      return { thread: { tag }, call_id };
    },

    async dueCalls(limit) {
      const due: DueCalls[] = [];
      await eachEntry(callSchedule, { limit, except: [] }, async (entry) => {
        const { head, calls = [], now } = await load({ tag: entry.thread }, { calls: true });
        // A thread that is busy, or can continue, is claimed again after a lease.
        if (head && runAhead(head) !== undefined) return false;
        const call_ids = calls.filter((call) => canContinue(call, now)).map(({ call_id }) => call_id);
        if (head && call_ids.length > 0) {
          due.push({ owner: head.owner, thread_id: head.id, call_ids });
          return true;
        }
        const ends = calls.map(({ expires_at }) => Date.parse(expires_at)).filter((at) => at > now);
        await callSchedule.reschedule(entry, ends.length > 0 ? Math.min(...ends) : undefined);
        return false;
      });
      return due;
    },

    deferredCalls: {
      async get({ owner, thread_id, call_id }) {
        return (await load({ tag: threadTag(owner, thread_id) }, { call: call_id })).call;
      },
    },

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
        lifetime.used(owner, threadId, found[1]);
        const runs = found[0].map((reply) => runOf(threadId, reply));
        return pageOf(runs, limit, ({ id }) => id);
      },

      async begun(owner, threadId, after) {
        const place = after === undefined ? -1 : after === "" ? 0 : "";
        const keys = threadKeys(threadTag(owner, threadId));
        const found = await redis.run(findBegunRun, keys, { place, after: after ?? "" });
        if (!found) return undefined;
        lifetime.used(owner, threadId, found[1]);
        return seen(owner, runOf(threadId, found[0]));
      },

      async place(owner, threadId, run) {
        const found = await redis.run(findPlace, threadKeys(threadTag(owner, threadId)), { sought: run });
        if (!found) return undefined;
        lifetime.used(owner, threadId, found[1]);
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
    events: sharedEvents(context),
  };

  async function read(owner: Owner, id: string, lookups: Lookups): Promise<RedisView> {
    const view = await load({ tag: threadTag(owner, id) }, lookups);
    if (view.head) lifetime.used(owner, id, view.life);
    return view;
  }

  /** A run that was read. Its thread is scheduled again if the schedule was lost. */
  function seen(owner: Owner, run: RunRecord | undefined): RunRecord | undefined {
    if (run && !isSettled(run.status)) runSchedule.ensure(owner, threadTag(owner, run.thread_id));
    return run;
  }

  /** Checks entries that are due, in batches, until `limit` checks have returned true. `except`: tags of tenants. */
  async function eachEntry(
    schedule: Schedule,
    { limit, except }: Due,
    check: (entry: ScheduleEntry) => Promise<boolean>,
  ): Promise<void> {
    const until = performance.now() + leaseMs / 3;
    for (let found = 0; found < limit && performance.now() < until; ) {
      const entries = await claim(
        schedule,
        { limit: Math.min(BATCH_SIZE, limit - found), except },
        found > 0,
      );
      if (entries.length === 0) return;
      // What cannot be checked now is claimed again later; what was found already must be returned.
      const results = await Promise.allSettled(entries.map(check));
      found += results.filter((each) => each.status === "fulfilled" && each.value).length;
    }
  }
}

/** Throws `unavailable`, unless something was found already. */
async function claim(schedule: Schedule, which: Due, isAnyFound: boolean): Promise<ScheduleEntry[]> {
  try {
    return await schedule.claim(which);
  } catch (error) {
    if (isAnyFound) return [];
    throw error;
  }
}

const keysOf = ({ owner, thread_id }: Lease) => threadKeys(threadTag(owner, thread_id));
