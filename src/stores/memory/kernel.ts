// Threads, runs and deferred calls in memory. Every change is made in one turn of the event loop. What is stored is
// a copy. What is returned is a copy or, as messages are, frozen: no caller can change what the store holds.

import { type DueCalls, hasResult } from "../../core/deferred-calls.ts";
import type { Message } from "../../core/message.ts";
import { jsonCopy } from "../../lib/json.ts";
import type { Owner } from "../../protocol/ids.ts";
import { latestLeaseEnd } from "../clock-set-back.ts";
import { noSuchMessage } from "../errors.ts";
import { PAST } from "../fair-queue.ts";
import type { Kernel } from "../kernel.ts";
import { badCursor, pageOf } from "../page.ts";
import { canContinue } from "../rules.ts";
import { type Lookups, needsRoom, runAhead, type StoredRun, type View } from "../thread-head.ts";
import { idsOf } from "./commit-events.ts";
import { memoryEvents } from "./events.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import { isBusy, type RunEntry, runOf, type ThreadEntry, toRecord } from "./records.ts";
import { pageOfThreads, toThread } from "./threads.ts";
import { memoryWrites } from "./writes.ts";

interface Ref {
  readonly owner: Owner;
  readonly id: string;
}

export function memoryKernel(memory: MemoryThreads): Kernel<Ref> {
  const { limits, turns, calls } = memory;
  const { now, leaseMs } = limits;
  const writes = memoryWrites(memory);

  return {
    limits,
    ref: (owner, id) => ({ owner, id }),

    async change(ref, lookups, decide) {
      const thread = memory.find(ref.owner, ref.id);
      const view = viewOf(thread, ref.owner, lookups);
      const decision = decide(view);
      if (decision.writes.some(needsRoom)) memory.makeRoom(ref.owner.tenant, thread);
      let written = thread;
      for (const write of decision.writes) written = writes.carryOut(written, ref.owner, write, view.now);
      if (decision.tell) calls.publish(decision.tell);
      return decision.result(view.now);
    },

    stage: writes.stage,
    unstage: writes.unstage,

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

    async logOf({ owner, thread_id, run_id }) {
      return memory.findRun(owner, thread_id, run_id)?.log?.entries ?? [];
    },

    async findCall(tokenHash) {
      const found = memory.findCall(tokenHash);
      return found && { thread: found.thread, call_id: found.call.call_id };
    },

    async dueCalls(limit) {
      memory.assertOpen();
      memory.sweep();
      return inTurn(dueThreads()).slice(0, limit).map(give);
    },

    events: memoryEvents(memory),

    deferredCalls: {
      async get({ owner, thread_id, call_id }) {
        return jsonCopy(memory.find(owner, thread_id)?.deferred?.get(call_id)?.call);
      },
    },

    runs: {
      waiting: async () => turns.waiting(),

      async get(owner, threadId, runId) {
        const run = memory.findRun(owner, threadId, runId);
        return run && toRecord(run);
      },

      async known(owner, threadId, key) {
        const run = memory.find(owner, threadId)?.runs.find((run) => run.key === key);
        return run && toRecord(run);
      },

      async list(owner, threadId, { limit, cursor }) {
        const runs = memory.find(owner, threadId)?.runs ?? [];
        const end = cursor === undefined ? runs.length : runs.findLastIndex((run) => run.id === cursor);
        if (end === -1 && cursor !== undefined) throw badCursor(cursor);
        const found = runs.slice(Math.max(0, end - limit - 1), end).reverse();
        const { items, ...next } = pageOf(found, limit, (last) => last.id);
        return { items: items.map(toRecord), ...next };
      },

      async active(owner, threadId) {
        const thread = memory.find(owner, threadId);
        const run = thread?.head.active && runOf(thread, thread.head.active.run);
        return run && toRecord(run);
      },

      async begun(owner, threadId, after) {
        const thread = memory.find(owner, threadId);
        const number = thread && numberAfter(thread, after);
        const run = number && thread.runs.findLast(({ begun }) => begun === number);
        return run ? toRecord(run) : undefined;
      },

      async place(owner, threadId, runId) {
        return memory.find(owner, threadId)?.runs.findLast(({ id }) => id === runId)?.begun;
      },

      subscribe(listener) {
        calls.subscribe(listener);
      },

      async inbox(lease) {
        return jsonCopy(memory.leased(lease).work.inbox);
      },

      async renew(lease) {
        const { thread } = memory.leased(lease);
        writes.hold(thread);
        const stop = thread.head.active?.stop;
        return stop ? { stop } : {};
      },
    },

    threads: {
      async interrupted() {
        memory.assertOpen();
        memory.sweep();
        return memory.countInterrupted();
      },

      async get(owner, id) {
        const thread = memory.find(owner, id);
        return thread && toThread(thread);
      },

      async list(owner, query) {
        return pageOfThreads(memory, owner, query);
      },

      async bytes(owner, id) {
        return memory.find(owner, id)?.messageBytes ?? 0;
      },

      async measured(owner, id) {
        const thread = memory.find(owner, id);
        return thread && { thread: toThread(thread), bytes: thread.messageBytes };
      },

      async message(owner, id, messageId) {
        return jsonCopy(
          memory
            .find(owner, id)
            ?.messages.findLast((each) => messageId === undefined || each.id === messageId),
        );
      },

      async messages(owner, id, { after, limit } = {}) {
        const messages = memory.find(owner, id)?.messages ?? [];
        const from = indexAfter(messages, after);
        return messages.slice(from, limit === undefined ? undefined : from + limit);
      },

      async messagePage(owner, id, { after, limit = Number.POSITIVE_INFINITY, bytes }) {
        const messages = memory.find(owner, id)?.messages ?? [];
        const from = indexAfter(messages, after);
        const texts: string[] = [];
        for (let left = bytes; texts.length < limit && from + texts.length < messages.length; ) {
          // To write a large message only to see that it does not fit would take as long as the page.
          if (texts.length > 0 && left <= 0) break;
          const text = JSON.stringify(messages[from + texts.length]);
          left -= Buffer.byteLength(text);
          if (texts.length > 0 && left < 0) break;
          texts.push(text);
        }
        return { texts, isLast: from + texts.length === messages.length };
      },

      async state(owner, id) {
        const slots = memory.find(owner, id)?.state ?? [];
        return Object.fromEntries([...slots].map(([key, { value }]) => [key, jsonCopy(value)]));
      },
    },
  };

  function viewOf(thread: ThreadEntry | undefined, owner: Owner, lookups: Lookups): View {
    const { key, run, next, message, last, inbox, call, calls: all, busyThreads } = lookups;
    const found = run === undefined ? undefined : thread && runOf(thread, run);
    const ahead = next && thread && runAhead(thread.head);
    const taken = ahead === undefined || !thread ? undefined : runOf(thread, ahead);
    const known = key === undefined ? undefined : thread?.runs.find((each) => each.key === key);
    const active = inbox && thread?.head.active && runOf(thread, thread.head.active.run);
    const kept = call === undefined ? undefined : thread?.deferred?.get(call);
    return {
      now: now(),
      head: thread?.head,
      until: thread?.isHeld ? (turns.heldUntil(thread) ?? PAST) : 0,
      known: known && toRecord(known),
      run: found && storedRun(found),
      next: taken && storedRun(taken),
      hasMessage: message !== undefined && thread !== undefined && idsOf(thread).has(message),
      isLast: last !== undefined && thread?.messages.at(-1)?.id === last,
      inbox: active?.work?.inbox.map(({ id }) => id),
      call: kept && jsonCopy(kept.call),
      calls: all && thread?.deferred && [...thread.deferred.values()].map(({ call }) => call),
      busyThreads: busyThreads && turns.count(owner.tenant),
    };
  }

  /** With the time since when each is due. Costs what is kept of all calls. */
  function dueThreads(): Map<ThreadEntry, number> {
    const found = new Map<ThreadEntry, number>();
    const time = now();
    for (const { thread, dueAt, call } of memory.deferredCalls()) {
      if (dueAt === undefined || isBusy(thread)) continue;
      // A result is due within a lease, or the clock was set back.
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

/** Where the messages after `after` begin. Throws `not_found`. */
function indexAfter(messages: readonly Message[], after: string | undefined): number {
  if (after === undefined) return 0;
  const index = messages.findIndex(({ id }) => id === after);
  if (index === -1) throw noSuchMessage(after);
  return index + 1;
}

const storedRun = (run: RunEntry): StoredRun => ({
  record: toRecord(run),
  request: jsonCopy(run.work?.request),
});

/** Of the run that was begun next after the run `after`: `""` stands for the beginning, nothing for the end. */
function numberAfter({ runs, begunCount }: ThreadEntry, after: string | undefined): number | undefined {
  if (after === undefined) return begunCount;
  if (after === "") return 1;
  const begun = runs.findLast((run) => run.id === after)?.begun;
  return begun === undefined ? undefined : begun + 1;
}

/** The first of each tenant, then the second of each, and so on; of those, what waits longest comes first. */
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
