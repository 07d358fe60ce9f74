// Reads threads, runs and deferred calls in memory.

import type { Message } from "../../../agent/core/message.ts";
import { jsonCopy } from "../../../lib/json.ts";
import { noSuchMessage } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import { badCursor, pageOf } from "../page.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import { runOf, type ThreadEntry, toRecord } from "./records.ts";
import { pageOfThreads, toThread } from "./threads.ts";

type Reads = Pick<Kernel<unknown>, "runs" | "threads" | "deferredCalls">;

/** `hold` restarts the lease of a thread's active run. */
export function memoryReads(memory: MemoryThreads, hold: (thread: ThreadEntry) => void): Reads {
  return { runs: runReads(memory, hold), threads: threadReads(memory), deferredCalls: callReads(memory) };
}

function runReads(memory: MemoryThreads, hold: (thread: ThreadEntry) => void): Reads["runs"] {
  const { turns, calls } = memory;
  return {
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
      hold(thread);
      const stop = thread.head.active?.stop;
      return stop ? { stop } : {};
    },
  };
}

function threadReads(memory: MemoryThreads): Reads["threads"] {
  return {
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
        memory.find(owner, id)?.messages.findLast((each) => messageId === undefined || each.id === messageId),
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
        // Serializing a large message only to find that it does not fit would take as long as the page itself.
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
  };
}

function callReads(memory: MemoryThreads): Reads["deferredCalls"] {
  return {
    async get({ owner, thread_id, call_id }) {
      return jsonCopy(memory.find(owner, thread_id)?.deferred?.get(call_id)?.call);
    },
  };
}

/** Returns the index that follows the message `after`. Throws `not_found`. */
function indexAfter(messages: readonly Message[], after: string | undefined): number {
  if (after === undefined) return 0;
  const index = messages.findIndex(({ id }) => id === after);
  if (index === -1) throw noSuchMessage(after);
  return index + 1;
}

/**
 * Returns the position of the run that began right after the run `after`. An empty string means the beginning, and
 * undefined means the end.
 */
function numberAfter({ runs, begunCount }: ThreadEntry, after: string | undefined): number | undefined {
  if (after === undefined) return begunCount;
  if (after === "") return 1;
  const begun = runs.findLast((run) => run.id === after)?.begun;
  return begun === undefined ? undefined : begun + 1;
}
