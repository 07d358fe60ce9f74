// Finds due threads: threads with runs that no process holds, and threads with deferred calls that can continue.

import type { DueCalls } from "../../../agent/core/deferred-calls.ts";
import type { Due, Kernel, LookResult } from "../kernel.ts";
import { canContinue } from "../rules.ts";
import { runAhead } from "../thread-head.ts";
import type { ThreadChanges, ThreadRef } from "./changes.ts";
import type { StoreContext } from "./context.ts";
import { tenantTag } from "./keys.ts";
import type { ScheduleEntry, ThreadSchedule } from "./schedule.ts";

/** The number of threads to check at once. */
const BATCH_SIZE = 32;

export function redisDue(
  { limits, runSchedule, callSchedule }: StoreContext,
  { load, graceMs }: ThreadChanges,
): Pick<Kernel<ThreadRef>, "eachDue" | "dueCalls"> {
  const { leaseMs } = limits;

  return {
    async eachDue<T>({ limit, except }: Due, look: (thread: ThreadRef) => Promise<LookResult<T>>) {
      const found: T[] = [];
      // First lets the holders renew their leases.
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

    async dueCalls(limit) {
      const due: DueCalls[] = [];
      await eachEntry(callSchedule, { limit, except: [] }, async (entry) => {
        const { head, calls = [], now } = await load({ tag: entry.thread }, { calls: true });
        // If a thread is busy or can continue, it is claimed again one lease later.
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
  };

  /**
   * Checks due entries in batches, until `limit` checks have returned true. `except` contains the tags of tenants to
   * skip.
   */
  async function eachEntry(
    schedule: ThreadSchedule,
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
      // If a thread cannot be checked now, it is claimed again later. The runs found so far must be returned.
      const results = await Promise.allSettled(entries.map(check));
      found += results.filter((each) => each.status === "fulfilled" && each.value).length;
    }
  }
}

/** Throws `unavailable`, unless a run has already been found. */
async function claim(schedule: ThreadSchedule, which: Due, isAnyFound: boolean): Promise<ScheduleEntry[]> {
  try {
    return await schedule.claim(which);
  } catch (error) {
    if (isAnyFound) return [];
    throw error;
  }
}
