// Runs in Redis: who may execute what. What a method changes of a thread and its runs, it changes in one script.

import type { Owner } from "../../core/ids.ts";
import { isSettled, type RunRecord, type RunRequest } from "../../core/records.ts";
import type { NewRun, RunStore, StartResult, StopMode, WhenBusy } from "../../core/stores.ts";
import { randomId } from "../../lib/random-id.ts";
import { draftOf, endingIn, neverStarted, stamp } from "../endings.ts";
import { queueRoom } from "../options.ts";
import { badCursor, pageOf } from "../page.ts";
import {
  cannotRewind,
  inboxFull,
  leaseLost,
  queueFull,
  runExists,
  tenantFull,
  threadBusy,
} from "../refusals.ts";
import { createClaims } from "./claims.ts";
import type { Engine } from "./engine.ts";
import { eventsKey, threadKeys, threadTag } from "./keys.ts";
import { quietly, timeText } from "./lifetime.ts";
import { inboxOf, type Made, ownerText, runOf } from "./records.ts";
import { rowsOf } from "./rows.ts";
import { begunRun } from "./scripts/begun-run.ts";
import { movesText } from "./scripts/call-parts.ts";
import { findRun } from "./scripts/find-run.ts";
import { inspectLease } from "./scripts/inspect-lease.ts";
import { knownRun } from "./scripts/known-run.ts";
import { listRuns } from "./scripts/list-runs.ts";
import { releaseLease } from "./scripts/release-lease.ts";
import { renewLease } from "./scripts/renew-lease.ts";
import type { ViewReply } from "./scripts/replies.ts";
import { type StartReply, startRun, type WhenFree } from "./scripts/start-run.ts";
import { steerRun } from "./scripts/steer-run.ts";
import { stopRun } from "./scripts/stop-run.ts";
import { withdrawRun } from "./scripts/withdraw-run.ts";

export function redisRuns(engine: Engine): RunStore {
  const { redis, replicas, lifetime, due, calls, delivery, writer, limits } = engine;
  const { leaseMs: lease_ms, queueLength, tenantQueueLength, inboxLength } = limits;
  const claims = createClaims(engine);
  const keysOf = (owner: Owner, threadId: string) => threadKeys(threadTag(owner, threadId));

  return {
    leaseMs: lease_ms,

    async start(owner, run, whenBusy) {
      const thread = threadTag(owner, run.thread_id);
      const noted = due.note(owner, thread, lease_ms);
      // One Redis takes things in the order in which they are sent; the servers of a cluster know no order.
      if (delivery.isCluster) await noted;
      // Should it have failed all the same, a later one makes up for it.
      else quietly(noted);
      const reply = await accept(owner, run, "claim", whenBusy);
      due.remind(owner, thread);
      if (reply[0] !== "claimed") return accepted(run, reply);
      const note = await noted.catch(() => undefined);
      return { outcome: "claimed", claim: claims.taken(run.thread_id, reply[1], note) };
    },

    async enqueue(owner, run, whenBusy) {
      const thread = threadTag(owner, run.thread_id);
      // Not yet at once: nobody may look at the thread, and forget it, before the run is there.
      const hasRoom = await due.noteWithin(tenantQueueLength, owner, thread);
      const result = accepted(run, await accept(owner, run, hasRoom ? "wait" : "none", whenBusy));
      if (result.outcome === "queued") await due.announce(owner, thread);
      return result;
    },

    async get(owner, threadId, runId) {
      return find(owner, threadId, runId);
    },

    async known(owner, threadId, key) {
      return seen(owner, threadId, await redis.run(knownRun, keysOf(owner, threadId), { key }));
    },

    async list(owner, threadId, { limit, cursor }) {
      const args = { cursor: cursor ?? "", limit: limit + 1 };
      const found = cursor === "" ? null : await redis.run(listRuns, keysOf(owner, threadId), args);
      if (!found) throw badCursor(cursor ?? "");
      lifetime.used(owner, threadId, found[1]);
      return pageOf(
        found[0].map((view) => runOf(threadId, view)),
        limit,
        ({ id }) => id,
      );
    },

    async active(owner, threadId) {
      return find(owner, threadId, "");
    },

    async claimNext(owner, threadId) {
      return claims.next(owner, threadId);
    },

    async claimAbandoned(limit) {
      return claims.abandoned(limit);
    },

    listen: (listener) => calls.listen(listener),

    async begun(owner, threadId, after) {
      const place = after === undefined ? -1 : after === "" ? 0 : "";
      const args = { place, after: after ?? "" };
      return seen(owner, threadId, await redis.run(begunRun, keysOf(owner, threadId), args));
    },

    requestStop: stop,

    async steer(owner, threadId, runId, message) {
      const args = { run: runId, id: message.id, message: JSON.stringify(message), length: inboxLength };
      const outcome = await redis.run(steerRun, keysOf(owner, threadId), args);
      if (outcome === "full") throw inboxFull(runId, inboxLength);
      return outcome === "left";
    },

    async inbox(lease) {
      const args = { run: lease.run_id, epoch: lease.epoch };
      const found = await redis.insist(inspectLease, keysOf(lease.owner, lease.thread_id), args);
      if (!found) throw leaseLost(lease);
      return inboxOf(found[2]);
    },

    async renew(lease) {
      const thread = threadTag(lease.owner, lease.thread_id);
      const args = { run: lease.run_id, epoch: lease.epoch, lease_ms };
      const stop = await redis.run(renewLease, threadKeys(thread), args);
      if (stop === "lost") {
        writer.forget(lease);
        throw leaseLost(lease);
      }
      due.remind(lease.owner, thread);
      return stop === null ? {} : { stop };
    },

    async release(lease) {
      const thread = threadTag(lease.owner, lease.thread_id);
      const args = { run: lease.run_id, epoch: lease.epoch };
      await writer.finish(lease);
      const isReleased = (await redis.run(releaseLease, threadKeys(thread), args)) === 1;
      writer.forget(lease);
      if (!isReleased) throw leaseLost(lease);
      await due.announce(lease.owner, thread);
    },
  };

  async function find(owner: Owner, threadId: string, run: string): Promise<RunRecord | undefined> {
    return seen(owner, threadId, await redis.run(findRun, keysOf(owner, threadId), { run }));
  }

  function seen(
    owner: Owner,
    threadId: string,
    found: [run: ViewReply, life: string] | null,
  ): RunRecord | undefined {
    if (!found) return undefined;
    lifetime.used(owner, threadId, found[1]);
    const run = runOf(threadId, found[0]);
    if (!isSettled(run.status)) due.remind(owner, threadTag(owner, threadId));
    return run;
  }

  async function stop(
    owner: Owner,
    threadId: string,
    run: string,
    mode: StopMode,
  ): Promise<RunRecord | undefined> {
    const found = await redis.run(stopRun, keysOf(owner, threadId), { run, mode });
    if (!found) return undefined;
    const [view, request, wish] = found;
    const record = runOf(threadId, view);
    if (wish) calls.say({ call: "stop", run_id: run, mode: wish });
    if (record.status !== "pending" || request === null) return record;
    // Only requests are put there.
    const { model } = JSON.parse(request) as RunRequest;
    if (await withdraw(owner, record, model)) return find(owner, threadId, run);
    // It was taken meanwhile.
    return stop(owner, threadId, run, mode);
  }

  async function accept(
    owner: Owner,
    run: NewRun,
    whenFree: WhenFree,
    whenBusy: WhenBusy,
  ): Promise<StartReply> {
    quietly(lifetime.list(owner, run.thread_id));
    const when = { when_free: whenFree, when_busy: whenBusy, length: queueRoom(queueLength, whenBusy) };
    const args = { ...argsOf(owner, run), ...when, lease_ms, by: randomId(), moves: movesText("rewind") };
    const rewound = run.rewind_to === undefined ? [] : [run.rewind_to];
    const reply = await redis.run(startRun, keysOf(owner, run.thread_id), args, rewound);
    if (reply[0] === "claimed" || reply[0] === "queued") await replicas.confirm();
    return reply;
  }

  function accepted({ id, thread_id, rewind_to = "" }: NewRun, reply: StartReply): Waits {
    switch (reply[0]) {
      case "claimed":
        throw new Error("A run that is to wait was claimed.");
      case "queued":
      case "known":
        return { outcome: reply[0], run: runOf(thread_id, reply[1]) };
      case "busy":
        throw threadBusy(thread_id, reply[1]);
      case "full":
        throw queueFull(thread_id, queueLength);
      case "exists":
        throw runExists(id);
      case "unknown":
        throw cannotRewind(rewind_to);
      case "none":
        throw tenantFull(tenantQueueLength);
    }
  }

  /** Whether the run waited and has ended with that. */
  async function withdraw(
    owner: Owner,
    { id, thread_id, agent }: RunRecord,
    model?: string,
  ): Promise<boolean> {
    const thread = threadTag(owner, thread_id);
    const stamped = stamp({ run_id: id, thread_id }, limits.now());
    const drafts = neverStarted(agent, model, stamped).map(draftOf);
    const args = {
      ...{ run: id, how: JSON.stringify(endingIn(drafts)), retention: timeText(limits.eventRetentionMs) },
      ...{ publish: delivery.publish, channel: delivery.channelOf(thread, id) },
      ...{ ttl: lifetime.ttlOf("idle"), interrupted_ttl: lifetime.ttlOf("interrupted") },
    };
    const keys = { ...threadKeys(thread), events: eventsKey(thread, id) };
    const isDone = (await redis.run(withdrawRun, keys, args, rowsOf(drafts))) === 1;
    // It has ended, whether or not the owner's list can be told.
    if (isDone) await lifetime.changed(owner, thread_id).catch(() => {});
    return isDone;
  }
}

/** What becomes of a run that is not claimed. */
type Waits = Exclude<StartResult, { outcome: "claimed" }>;

function argsOf(owner: Owner, { id, agent, metadata, request, resumes, idempotency_key }: NewRun) {
  const made: Made = { agent, metadata, ...(resumes === undefined ? {} : { resumes }) };
  return {
    ...{ run: id, owner: ownerText(owner), agent, key: idempotency_key ?? "" },
    ...{ made: JSON.stringify(made), request: JSON.stringify(request) },
  };
}
