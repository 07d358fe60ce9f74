// Runs in memory: who may execute what. Every method changes what it changes in one turn of the event loop.

import { NO_USAGE } from "../../core/message.ts";
import type { Claim, NewRun, RunRecord, RunStore } from "../../core/stores.ts";
import { jsonCopy } from "../../lib/json-copy.ts";
import { crashedTooOften, neverStarted } from "../endings.ts";
import { Log } from "../log.ts";
import { badCursor, pageOf } from "../page.ts";
import { inboxFull, queueFull, runExists, threadBusy } from "../refusals.ts";
import type { Book } from "./book.ts";
import { isBusy, isLive, type LiveRun, type RunEntry, type ThreadEntry } from "./entries.ts";
import { idsOf, record, setInbox, sizeOf, stampOf } from "./record.ts";
import { newThread } from "./threads.ts";

/** What a run weighs beside its request and its events, about, in bytes. */
const RUN_BYTES = 600;

export function memoryRuns(book: Book): RunStore {
  const { now, queueLength, inboxLength, leaseMs, maxAttempts } = book.limits;

  return {
    async start(owner, news, whenBusy) {
      const found = book.find(owner, news.thread_id);
      const known = found && knownAs(found, news.idempotency_key);
      if (known) return { outcome: "known", run: toRecord(known) };
      if (found?.runs.some((run) => run.id === news.id)) throw runExists(news.id);
      if (found && isBusy(found)) mayWait(found, whenBusy);
      book.makeRoom(found);

      const thread = found ?? newThread(book, owner, news.thread_id);
      const run = enqueue(thread, news, whenBusy === "front");
      const claim = thread.queue.length === 1 ? claimNext(thread) : undefined;
      return claim ? { outcome: "claimed", claim } : { outcome: "queued", run: toRecord(run) };
    },

    async get(owner, threadId, runId) {
      const run = book.findRun(owner, threadId, runId);
      return run && toRecord(run);
    },

    async list(owner, threadId, { limit, cursor }) {
      const runs = book.find(owner, threadId)?.runs ?? [];
      const end = cursor === undefined ? runs.length : runs.findLastIndex((run) => run.id === cursor);
      if (end === -1 && cursor !== undefined) throw badCursor(cursor);
      const found = runs.slice(Math.max(0, end - limit - 1), end).reverse();
      const { items, ...next } = pageOf(found, limit, (last) => last.id);
      return { items: items.map(toRecord), ...next };
    },

    async active(owner, threadId) {
      const run = book.find(owner, threadId)?.active;
      return run && toRecord(run);
    },

    async claimNext(owner, threadId) {
      const thread = book.find(owner, threadId);
      return thread && claimNext(thread);
    },

    async claimAbandoned() {
      book.assertOpen();
      const claims: Claim[] = [];
      for (const run of [...book.running]) {
        if (run.work.leaseUntil > now()) continue;
        if (run.attempt < maxAttempts) claims.push(claim(run, run.attempt + 1));
        else giveUp(run);
      }
      for (const thread of [...book.waiting]) {
        const next = claimNext(thread);
        if (next) claims.push(next);
      }
      return claims;
    },

    async requestStop(owner, threadId, runId, mode) {
      const run = book.findRun(owner, threadId, runId);
      if (!run) return undefined;
      if (isLive(run)) {
        if (run.status === "pending")
          record(book, run, neverStarted(run.agent, run.work.request.model, stampOf(book, run)));
        else if (run.work.stop !== "cancel") run.work.stop = mode;
      }
      return toRecord(run);
    },

    async steer(owner, threadId, runId, message) {
      const run = book.findRun(owner, threadId, runId);
      if (run?.status !== "running" || !isLive(run)) return false;
      const { inbox } = run.work;
      if (idsOf(run.thread).has(message.id) || inbox.some((left) => left.id === message.id)) return true;
      if (inbox.length >= inboxLength) throw inboxFull(runId, inboxLength);
      book.makeRoom();
      setInbox(book, run, [...inbox, jsonCopy(message)]);
      return true;
    },

    async inbox(lease) {
      return jsonCopy(book.leased(lease).work.inbox);
    },

    async renew(lease) {
      const { work } = book.leased(lease);
      work.leaseUntil = now() + leaseMs;
      return work.stop ? { stop: work.stop } : {};
    },
  };

  function knownAs(thread: ThreadEntry, key: string | undefined): RunEntry | undefined {
    return key === undefined ? undefined : thread.runs.find((run) => run.key === key);
  }

  function mayWait(thread: ThreadEntry, whenBusy: "reject" | "queue" | "front"): void {
    const ahead = thread.active ?? thread.queue[0];
    if (whenBusy === "reject" && ahead) throw threadBusy(thread.id, ahead.id);
    if (thread.queue.length >= queueLength) throw queueFull(thread.id, queueLength);
  }

  function enqueue(thread: ThreadEntry, news: NewRun, front: boolean): RunEntry {
    const run = newRun(thread, news);
    thread.runs.push(run);
    thread.queue.splice(front ? 0 : thread.queue.length, 0, run);
    thread.agent = run.agent;
    thread.updatedAt = run.createdAt;
    book.weigh(thread, RUN_BYTES + run.work.requestBytes);
    book.touch(thread);
    return run;
  }

  function newRun(thread: ThreadEntry, news: NewRun): LiveRun {
    const { id, agent, metadata, idempotency_key: key } = news;
    const request = jsonCopy(news.request);
    return {
      thread,
      id,
      agent,
      metadata: { ...metadata },
      key,
      createdAt: now(),
      status: "pending",
      attempt: 1,
      usage: NO_USAGE,
      stopReason: undefined,
      error: undefined,
      endedAt: undefined,
      lastSeq: 0,
      work: { request, requestBytes: sizeOf(request), inbox: [], leaseUntil: 0, stop: undefined },
      log: new Log(book.limits.eventsPerRun),
    };
  }

  function claimNext(thread: ThreadEntry): Claim | undefined {
    const run = thread.queue[0];
    if (thread.active || !run || !isLive(run)) return undefined;
    thread.queue.shift();
    thread.active = run;
    book.running.add(run);
    book.touch(thread);
    return claim(run, run.attempt);
  }

  function claim(run: LiveRun, attempt: number): Claim {
    run.status = "running";
    run.attempt = attempt;
    run.work.leaseUntil = now() + leaseMs;
    const { owner, id } = run.thread;
    const lease = { owner: { ...owner }, thread_id: id, run_id: run.id, epoch: attempt };
    return { lease, run: toRecord(run), request: jsonCopy(run.work.request) };
  }

  function giveUp(run: LiveRun): void {
    record(book, run, crashedTooOften(run.attempt, run.log.entries, stampOf(book, run)));
  }
}

function toRecord(run: RunEntry): RunRecord {
  const { id, agent, status, attempt, stopReason, error, usage, metadata, endedAt } = run;
  return {
    ...{ id, thread_id: run.thread.id, agent, status, attempt },
    ...(stopReason === undefined ? {} : { stop_reason: stopReason }),
    ...(error === undefined ? {} : { error: jsonCopy(error) }),
    ...{ usage: { ...usage }, metadata: { ...metadata }, created_at: new Date(run.createdAt).toISOString() },
    ...(endedAt === undefined ? {} : { ended_at: new Date(endedAt).toISOString() }),
  };
}
