// Calls whose results come later, in memory.

import {
  type CallChange,
  type CallKey,
  type DeferredCall,
  type DeferredCallStore,
  type DueCalls,
  hasResult,
  isAwaited,
  MAX_DEFERRED_CALLS,
  stateAfter,
} from "../../core/deferred-calls.ts";
import { jsonCopy } from "../../lib/json-copy.ts";
import { noSuchThread, tooManyDeferredCalls } from "../refusals.ts";
import type { Book } from "./book.ts";
import { type DeferredEntry, isBusy, type ThreadEntry } from "./entries.ts";

export function memoryDeferredCalls(book: Book): DeferredCallStore {
  const { now, leaseMs } = book.limits;
  const find = ({ owner, thread_id, call_id }: CallKey) =>
    book.find(owner, thread_id)?.deferred?.get(call_id);
  const isOver = ({ expires_at }: DeferredCall) => Date.parse(expires_at) <= now();
  const canGoOn = ({ call }: DeferredEntry) =>
    hasResult(call.state) || (isAwaited(call.state) && isOver(call));

  return {
    async open(call) {
      const thread = book.find(call.owner, call.thread_id);
      if (!thread) throw noSuchThread(call.thread_id);
      for (const old of thread.deferred?.values() ?? [])
        if (old.call.state === "sent" && isOver(old.call)) book.forgetCall(old);
      const others = (thread.deferred?.size ?? 0) - (thread.deferred?.has(call.call_id) ? 1 : 0);
      if (others >= MAX_DEFERRED_CALLS) throw tooManyDeferredCalls(call.thread_id);
      book.makeRoom(thread);
      keep(thread, { ...jsonCopy(call), state: "sent" }, undefined);
    },

    async get(key) {
      return copyOf(find(key));
    },

    async accept(key) {
      return change(find(key), "accept");
    },

    async leave(key) {
      return change(find(key), "leave");
    },

    async close(key) {
      return change(find(key), "close");
    },

    async deliver(tokenHash, reply) {
      const found = book.findCall(tokenHash);
      const state = found && stateAfter("deliver", found.call.state);
      if (!state || state === "gone" || isOver(found.call)) return undefined;
      const { thread, call } = found;
      book.makeRoom(thread);
      return keep(thread, { ...call, state, reply: jsonCopy(reply) }, now());
    },

    async forget(key) {
      const found = find(key);
      if (found) book.forgetCall(found);
    },

    async due(limit) {
      book.assertOpen();
      book.sweep();
      return inTurn(dueThreads()).slice(0, limit).map(give);
    },
  };

  /** Returns the call as it is then. */
  function change(found: DeferredEntry | undefined, by: CallChange): DeferredCall | undefined {
    const state = found && stateAfter(by, found.call.state);
    if (!state) return copyOf(found);
    const { thread, call } = found;
    if (state !== "gone") return keep(thread, { ...call, state }, Date.parse(call.expires_at));
    book.forgetCall(found);
    return undefined;
  }

  function keep(thread: ThreadEntry, call: DeferredCall, dueAt: number | undefined): DeferredCall {
    book.keepCall({ thread, call, bytes: Buffer.byteLength(JSON.stringify(call)), dueAt });
    return jsonCopy(call);
  }

  /** With the time since when each is due. Costs what is kept of all calls. */
  function dueThreads(): Map<ThreadEntry, number> {
    const found = new Map<ThreadEntry, number>();
    for (const { thread, dueAt } of book.deferredCalls())
      if (dueAt !== undefined && dueAt <= now() && !isBusy(thread))
        found.set(thread, Math.min(dueAt, found.get(thread) ?? dueAt));
    return found;
  }

  function give({ owner, id, deferred }: ThreadEntry): DueCalls {
    const calls = [...(deferred?.values() ?? [])].filter(canGoOn);
    for (const call of calls) call.dueAt = now() + leaseMs;
    return { owner: { ...owner }, thread_id: id, call_ids: calls.map(({ call }) => call.call_id) };
  }
}

const copyOf = (entry: DeferredEntry | undefined) => entry && jsonCopy(entry.call);

/** The first of each tenant, then the second of each, and so on; of those, what waits longest comes first. */
function inTurn(since: ReadonlyMap<ThreadEntry, number>): ThreadEntry[] {
  const counts = new Map<string, number>();
  const turns = [...since]
    .sort(([, a], [, b]) => a - b)
    .map(([thread]) => {
      const turn = (counts.get(thread.owner.tenant) ?? 0) + 1;
      counts.set(thread.owner.tenant, turn);
      return { thread, turn };
    });
  return turns.sort((a, b) => a.turn - b.turn).map(({ thread }) => thread);
}
