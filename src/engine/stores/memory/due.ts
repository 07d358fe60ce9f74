// Finds due threads, which are threads with runs that no process holds and threads with deferred calls that can
// continue.

import { type DueCalls, hasResult } from "../../../agent/core/deferred-calls.ts";
import { latestLeaseEnd } from "../clock-set-back.ts";
import type { Kernel } from "../kernel.ts";
import { canContinue } from "../rules.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import { isBusy, type ThreadEntry } from "./records.ts";

export function memoryDue(memory: MemoryThreads): Pick<Kernel<ThreadEntry>, "eachDue" | "dueCalls"> {
  const { limits, turns } = memory;
  const { now, leaseMs } = limits;

  return {
    async eachDue({ limit, except }, look) {
      memory.assertOpen();
      const all = [];
      const left = new Set(except);
      const later: ThreadEntry[] = [];
      while (all.length < limit) {
        const thread = turns.take(left);
        if (!thread) break;
        const looked = await look(thread);
        if (!("until" in looked)) all.push(looked.found);
        else if (looked.until !== undefined) later.push(thread);
      }
      for (const thread of later)
        if (turns.heldUntil(thread) === undefined) turns.wait(thread.owner.tenant, thread);
      return all;
    },

    async dueCalls(limit) {
      memory.assertOpen();
      memory.sweep();
      return inTurn(dueThreads()).slice(0, limit).map(give);
    },
  };

  /** Returns the due threads, each with the time at which it became due. Reads all stored calls. */
  function dueThreads(): Map<ThreadEntry, number> {
    const found = new Map<ThreadEntry, number>();
    const time = now();
    for (const { thread, dueAt, call } of memory.deferredCalls()) {
      if (dueAt === undefined || isBusy(thread)) continue;
      // A result becomes due within the length of a lease. If it is due later, the clock was set back.
      const isLate = hasResult(call.state) && dueAt > latestLeaseEnd(time, leaseMs);
      if (dueAt <= time || isLate) found.set(thread, Math.min(dueAt, time, found.get(thread) ?? time));
    }
    return found;
  }

  function give({ owner, id, deferred }: ThreadEntry): DueCalls {
    const due = [...(deferred?.values() ?? [])].filter(({ call }) => canContinue(call, now()));
    for (const call of due) call.dueAt = now() + leaseMs;
    return { owner: { ...owner }, thread_id: id, call_ids: due.map(({ call }) => call.call_id) };
  }
}

/**
 * Returns the first thread of each tenant, then the second of each, and so on. Within a tenant, the thread that has
 * waited longest comes first.
 */
function inTurn(since: ReadonlyMap<ThreadEntry, number>): ThreadEntry[] {
  const counts = new Map<string, number>();
  const inOrder = [...since]
    .sort(([, a], [, b]) => a - b)
    .map(([thread]) => {
      const turn = (counts.get(thread.owner.tenant) ?? 0) + 1;
      counts.set(thread.owner.tenant, turn);
      return { thread, turn };
    });
  return inOrder.sort((a, b) => a.turn - b.turn).map(({ thread }) => thread);
}
