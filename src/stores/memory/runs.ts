// Runs in memory: who may execute what. Every method changes what it changes in one turn of the event loop.

import type { Owner } from "../../core/ids.ts";
import { NO_USAGE } from "../../core/message.ts";
import type { NewRun, RunStore, StartResult, WhenBusy } from "../../core/stores.ts";
import { jsonCopy } from "../../lib/json-copy.ts";
import { neverStarted } from "../endings.ts";
import { Log } from "../log.ts";
import { queueRoom } from "../options.ts";
import { badCursor, pageOf } from "../page.ts";
import { inboxFull, queueFull, runExists, tenantFull, threadBusy } from "../refusals.ts";
import type { Book } from "./book.ts";
import { createClaims } from "./claims.ts";
import { idsOf, placeOf, rewind, sizeOf } from "./content.ts";
import { isBusy, isLive, type LiveRun, type RunEntry, type ThreadEntry, toRecord } from "./entries.ts";
import { record, setInbox, stampOf } from "./record.ts";
import { newThread } from "./threads.ts";

/** What a run weighs beside its request and its events, about, in bytes. */
const RUN_BYTES = 600;

export function memoryRuns(book: Book): RunStore {
  const { now, queueLength, tenantQueueLength, inboxLength, leaseMs } = book.limits;
  const { turns, calls } = book;
  const claims = createClaims(book);

  return {
    leaseMs,

    async start(owner, news, whenBusy) {
      const found = book.find(owner, news.thread_id);
      const known = knownAs(found, news.idempotency_key);
      if (known) return known;
      const run = accept(owner, news, whenBusy);
      const { thread } = run;
      const claim = thread.queue.length === 1 ? claims.next(thread) : undefined;
      return claim ? { outcome: "claimed", claim } : { outcome: "queued", run: toRecord(run) };
    },

    async enqueue(owner, news, whenBusy) {
      const found = book.find(owner, news.thread_id);
      const known = knownAs(found, news.idempotency_key);
      if (known) return known;
      const isOneMore = !found || !isBusy(found);
      if (isOneMore && turns.count(owner.tenant) >= tenantQueueLength) throw tenantFull(tenantQueueLength);
      const run = accept(owner, news, whenBusy);
      calls.say({ call: "waiting" });
      return { outcome: "queued", run: toRecord(run) };
    },

    async get(owner, threadId, runId) {
      const run = book.findRun(owner, threadId, runId);
      return run && toRecord(run);
    },

    async known(owner, threadId, key) {
      const run = book.find(owner, threadId)?.runs.find((run) => run.key === key);
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
      return thread && claims.left(thread);
    },

    async claimAbandoned(limit) {
      book.assertOpen();
      return claims.abandoned(limit);
    },

    async release(lease) {
      const { work, thread } = book.leased(lease);
      work.isHeld = false;
      work.released++;
      turns.wait(thread.owner.tenant, thread);
      calls.say({ call: "waiting" });
    },

    listen(listener) {
      calls.listen(listener);
    },

    async begun(owner, threadId, after) {
      const thread = book.find(owner, threadId);
      const number = thread && numberAfter(thread, after);
      const run = number && thread.runs.findLast(({ begun }) => begun === number);
      return run ? toRecord(run) : undefined;
    },

    async requestStop(owner, threadId, runId, mode) {
      const run = book.findRun(owner, threadId, runId);
      if (!run) return undefined;
      if (isLive(run) && run.status === "pending")
        record(book, run, neverStarted(run.agent, run.work.request.model, stampOf(book, run)));
      else if (isLive(run)) {
        const stop = run.work.stop === "cancel" ? "cancel" : mode;
        run.work.stop = stop;
        calls.say({ call: "stop", run_id: run.id, mode: stop });
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
      const { work, thread } = book.leased(lease);
      turns.hold(thread.owner.tenant, thread);
      return work.stop ? { stop: work.stop } : {};
    },
  };

  function knownAs(
    thread: ThreadEntry | undefined,
    key: string | undefined,
  ): Extract<StartResult, { outcome: "known" }> | undefined {
    const run = key === undefined ? undefined : thread?.runs.find((run) => run.key === key);
    return run && { outcome: "known", run: toRecord(run) };
  }

  /** The run waits from here on. Throws what speaks against that. */
  function accept(owner: Owner, news: NewRun, whenBusy: WhenBusy): RunEntry {
    const found = book.find(owner, news.thread_id);
    if (found?.runs.some((run) => run.id === news.id)) throw runExists(news.id);
    const { rewind_to } = news;
    if (found && isBusy(found)) mayWait(found, rewind_to === undefined ? whenBusy : "reject");
    const place = rewind_to === undefined ? undefined : placeOf(found, rewind_to);
    book.makeRoom(found);
    const thread = found ?? newThread(book, owner, { id: news.thread_id });
    const run = append(thread, news, whenBusy === "front");
    if (place !== undefined) rewind(book, thread, place);
    return run;
  }

  function mayWait(thread: ThreadEntry, whenBusy: WhenBusy): void {
    const ahead = thread.active ?? thread.queue[0];
    if (whenBusy === "reject" && ahead) throw threadBusy(thread.id, ahead.id);
    const room = queueRoom(queueLength, whenBusy);
    if (thread.queue.length >= room) throw queueFull(thread.id, queueLength);
  }

  function append(thread: ThreadEntry, news: NewRun, front: boolean): RunEntry {
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
    const { id, agent, metadata, idempotency_key: key, resumes } = news;
    const request = jsonCopy(news.request);
    return {
      thread,
      id,
      agent,
      metadata: { ...metadata },
      key,
      resumes,
      createdAt: now(),
      status: "pending",
      attempt: 1,
      begun: undefined,
      usage: NO_USAGE,
      stopReason: undefined,
      error: undefined,
      endedAt: undefined,
      lastSeq: 0,
      work: {
        request,
        requestBytes: sizeOf(request),
        inbox: [],
        isHeld: false,
        released: 0,
        stop: undefined,
      },
      log: new Log(book.limits.eventsPerRun),
    };
  }
}

/** Of the run that was begun next after the run `after`: `""` stands for the beginning, nothing for the end. */
function numberAfter({ runs, begunCount }: ThreadEntry, after: string | undefined): number | undefined {
  if (after === undefined) return begunCount;
  if (after === "") return 1;
  const begun = runs.findLast((run) => run.id === after)?.begun;
  return begun === undefined ? undefined : begun + 1;
}
