// Threads, runs and deferred calls in Redis: a thread is loaded with one script and changed with another, which carries
// out a decision if the thread is still as it was loaded. What lies elsewhere than the thread (its schedule, its place in
// the owner's list, a call's token) is written before the thread says so, or after it no longer does.

import { LRUCache } from "lru-cache";
import type { DeferredCall, DueCalls } from "../../core/deferred-calls.ts";
import type { Owner } from "../../core/ids.ts";
import { isSettled, type RunRecord } from "../../core/records.ts";
import type { Cursor, Lease, LogEntry } from "../../core/stores.ts";
import { leaseLost } from "../errors.ts";
import { changeVersioned, type Kernel, type Looked } from "../kernel.ts";
import { badCursor, pageOf } from "../page.ts";
import { canContinue } from "../rules.ts";
import { type Decision, type Lookups, needsRoom, runAhead, type View, type Write } from "../thread-head.ts";
import { withTimeout } from "./client.ts";
import type { StoreContext } from "./context.ts";
import { redisEvents } from "./events.ts";
import {
  DEDUPE_TTL_MS,
  deletedKey,
  eventsKey,
  tenantTag,
  threadIdOf,
  threadKeys,
  threadTag,
  tokenKey,
} from "./keys.ts";
import { ignoreErrors, timeText } from "./lifetime.ts";
import { inboxOf, NO_THREAD, type RedisView, runOf, viewOf } from "./records.ts";
import type { Schedule, ScheduleEntry } from "./schedule.ts";
import {
  commitAdding,
  commitAlways,
  dropToken,
  findBegunRun,
  inspectLease,
  listRuns,
  loadThread,
  putToken,
  readToken,
  renewLease,
  type ThreadReply,
} from "./scripts.ts";
import { redisThreads } from "./threads.ts";
import { argsOfWrite } from "./writes.ts";

/** Threads that are checked at once. */
const BATCH_SIZE = 32;
/** Clocks differ, and a delivery may be repeated. */
const TOKEN_RESERVE_MS = 60_000;
/** Threads that were read lately and are likely to get a run: a run on one of them is decided without a load. */
const LATELY_READ = 256;
/** How long a change that met another one of its thread waits for it. */
const TURN_MS = 1_000;

interface ThreadRef {
  readonly tag: string;
  /** Known unless the thread comes from a schedule or a token. */
  readonly owner?: Owner | undefined;
  /** Of a thread that was claimed from the schedule. */
  readonly entry?: ScheduleEntry | undefined;
}

export function redisKernel(context: StoreContext): Kernel<ThreadRef> {
  const { redis, replicas, limits, lifetime, runSchedule, callSchedule, calls, delivery, writer, pages } =
    context;
  const { leaseMs } = limits;
  const latelyRead = new LRUCache<string, RedisView>({ max: LATELY_READ });
  const turns = new Map<string, Promise<void>>();
  const fixed = {
    lease_ms: leaseMs,
    ttl: lifetime.ttlOf("idle"),
    interrupted_ttl: lifetime.ttlOf("interrupted"),
    retention: timeText(limits.eventRetentionMs),
    publish: delivery.publish,
    dedupe_ms: DEDUPE_TTL_MS,
  };

  const asView = (tag: string, reply: ThreadReply) => viewOf(threadIdOf(tag), reply, graceMs());

  return {
    limits,
    ref: (owner, id) => ({ tag: threadTag(owner, id), owner }),
    change,

    async eachDue<T>(limit: number, look: (thread: ThreadRef) => Promise<Looked<T>>) {
      const found: T[] = [];
      // Holders renew their leases first.
      if (graceMs() > 0) return found;
      await eachEntry(runSchedule, limit, async (entry) => {
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
      const place = await redis.run(readToken, { token: tokenKey(tokenHash) }, {});
      if (place === null) return undefined;
      // Written by `afterwards`.
      const [, tag, call_id] = JSON.parse(place) as CallPlace;
      return { thread: { tag }, call_id };
    },

    async dueCalls(limit) {
      const due: DueCalls[] = [];
      await eachEntry(callSchedule, limit, async (entry) => {
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

    threads: redisThreads(context, (owner, view) => {
      if (view.head) latelyRead.set(threadTag(owner, view.head.id), view);
    }),
    events: redisEvents(context),
  };

  async function change<R>(
    ref: ThreadRef,
    lookups: Lookups,
    decide: (view: View) => Decision<R>,
  ): Promise<R> {
    const { tag } = ref;
    const { room, after, isLikelyNew } = lookups;
    if (after) await writer.finish(after);
    const hasRoom = room && (await runSchedule.addWithin(limits.tenantQueueLength, tenantOf(ref), tag));
    const guess = isLikelyNew ? (latelyRead.get(tag) ?? NO_THREAD) : undefined;
    latelyRead.delete(tag);
    let tell: Decision<R>["tell"];
    const decideWithRoom = (view: View) => {
      const decision = decide({ ...view, hasRoom });
      tell = decision.tell;
      return decision;
    };
    let endTurn: (() => void) | undefined;
    const store = {
      load: () => load(ref, lookups),
      async commit(view: RedisView, writes: readonly Write[], id: string) {
        const reply = await commit(ref, lookups, { view, writes, id });
        if ("at" in reply || endTurn) return reply;
        endTurn = await takeTurn(tag);
        return { newer: await load(ref, lookups) };
      },
    };
    try {
      const result = await changeVersioned(store, decideWithRoom, guess);
      if (tell?.call === "stop") calls.publish(tell);
      if (tell?.call === "waiting") await wakeNow(tenantOf(ref), tag);
      return result;
    } finally {
      endTurn?.();
      if (after) writer.forget(after);
    }
  }

  /** Changes of one thread that have met each other here go one by one: no commit is lost if they do not. */
  async function takeTurn(tag: string): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = turns.get(tag);
    turns.set(tag, promise);
    if (before) await withTimeout(TURN_MS, before).catch(() => {});
    return () => {
      resolve();
      if (turns.get(tag) === promise) turns.delete(tag);
    };
  }

  function load({ tag }: ThreadRef, lookups: Lookups): Promise<RedisView> {
    return redis.run(loadThread, threadKeys(tag), argsOf(lookups)).then((reply) => asView(tag, reply));
  }

  async function read(owner: Owner, id: string, lookups: Lookups): Promise<RedisView> {
    const view = await load({ tag: threadTag(owner, id) }, lookups);
    if (view.head) lifetime.used(owner, id, view.life);
    return view;
  }

  async function commit(
    ref: ThreadRef,
    lookups: Lookups,
    { view, writes, id }: { view: RedisView; writes: readonly Write[]; id: string },
  ): Promise<{ at: number } | { newer: RedisView }> {
    const { tag } = ref;
    const owner = view.head?.owner ?? ref.owner;
    if (!owner) throw new Error("Only a thread that is there can be changed without its owner.");
    const change: Change = { owner, tag, id: threadIdOf(tag), writes, view };
    const hold = find(writes, "hold_run");
    const { noted } = await prepare(change, lookups);
    const args = {
      ...argsOf(lookups),
      ...fixed,
      id,
      expected: view.seen,
      held_until: hold && view.head?.active ? view.heldUntil : "",
      new_run: find(writes, "add_run")?.run.id ?? "",
      channel: delivery.channelOf(tag, find(writes, "cancel_run")?.run ?? ""),
      stream: eventsKey(tag, ""),
      deleted: deletedKey(tag, id),
    };
    const script = writes.some(needsRoom) ? commitAdding : commitAlways;
    const reply = await redis.run(
      script,
      threadKeys(tag),
      args,
      writes.flatMap((write) => argsOfWrite(write, owner)),
    );
    if (reply[0] === 0) return { newer: asView(tag, reply[1]) };
    const [, at, seq] = reply;
    await followUp(change, at);
    if (hold) {
      const lease = { owner, thread_id: change.id, run_id: hold.run, epoch: hold.epoch };
      writer.begin(lease, Number(seq), ref.entry ?? (await noted.catch(() => undefined)));
    }
    return { at };
  }

  /** What must be written before the thread says so. */
  async function prepare(
    { owner, tag, id, writes, view }: Change,
    { room }: Lookups,
  ): Promise<{ noted: Promise<ScheduleEntry | undefined> }> {
    const tenant = tenantTag(owner);
    let noted: Promise<ScheduleEntry | undefined> = Promise.resolve(undefined);
    if (find(writes, "add_run")) {
      ignoreErrors(lifetime.list(owner, id));
      if (!room) noted = runSchedule.add(tenant, tag, leaseMs);
      // One Redis carries out commands in the order in which they are sent; the servers of a cluster know no order.
      if (delivery.isCluster) await noted;
      // A failed one is made up for by the next `ensure`.
      else ignoreErrors(noted);
    } else if (find(writes, "create_thread")) await lifetime.list(owner, id);
    const due = find(writes, "put_call")?.due_at;
    if (due !== undefined) await callSchedule.add(tenant, tag, Math.max(due - view.now, leaseMs));
    return { noted };
  }

  /** What follows from the writes elsewhere. */
  async function followUp({ owner, tag, id, writes }: Change, at: number): Promise<void> {
    const put = find(writes, "put_call");
    if (find(writes, "add_run")) {
      runSchedule.ensure(owner, tag);
      await replicas.confirm();
    }
    if (find(writes, "describe_thread")) await lifetime.changed(owner, id);
    // It is done, whether or not the owner's list can be updated.
    if (find(writes, "clear_thread") ?? find(writes, "cancel_run"))
      await lifetime.changed(owner, id).catch(() => {});
    if (find(writes, "clear_thread") ?? put?.call.reply) lifetime.renew(owner, id);
    for (const write of writes)
      if (write.write === "drop_call" && write.token_hash !== put?.call.token_hash)
        ignoreErrors(redis.run(dropToken, { token: tokenKey(write.token_hash) }, {}));
    if (put?.call.state === "sent") await keepToken(tag, put.call);
    // Otherwise it is found a lease later.
    if (put?.due_at !== undefined && put.due_at <= at)
      await callSchedule.add(tenantTag(owner), tag, 0).catch(() => {});
  }

  async function keepToken(
    tag: string,
    { owner, call_id, expires_at, token_hash }: DeferredCall,
  ): Promise<void> {
    const place = JSON.stringify([tenantTag(owner), tag, call_id] satisfies CallPlace);
    const args = { place, expires: Date.parse(expires_at), reserve: TOKEN_RESERVE_MS };
    await redis.run(putToken, { token: tokenKey(token_hash) }, args);
  }

  /** Any process may take the thread's next run now. When that cannot be said, it is found later. */
  async function wakeNow(tenant: string, tag: string): Promise<void> {
    await runSchedule.add(tenant, tag, 0).then(calls.waiting, () => {});
  }

  /** A run that was read. Its thread is scheduled again if the schedule was lost. */
  function seen(owner: Owner, run: RunRecord | undefined): RunRecord | undefined {
    if (run && !isSettled(run.status)) runSchedule.ensure(owner, threadTag(owner, run.thread_id));
    return run;
  }

  /**
   * How much longer than their time leases last: while Redis was away none could be renewed. Those that were over before
   * stay so.
   */
  function graceMs(): number {
    const { ms, ago } = redis.lastOutage;
    return ms > leaseMs / 2 && ago < leaseMs / 2 ? ms + ago : 0;
  }

  /** Checks entries that are due, in batches, until `limit` checks have returned true. */
  async function eachEntry(
    schedule: Schedule,
    limit: number,
    check: (entry: ScheduleEntry) => Promise<boolean>,
  ): Promise<void> {
    const until = performance.now() + leaseMs / 3;
    for (let found = 0; found < limit && performance.now() < until; ) {
      const entries = await claim(schedule, Math.min(BATCH_SIZE, limit - found), found > 0);
      if (entries.length === 0) return;
      // What cannot be checked now is claimed again later; what was found already must be returned.
      const results = await Promise.allSettled(entries.map(check));
      found += results.filter((each) => each.status === "fulfilled" && each.value).length;
    }
  }
}

/** Throws `unavailable`, unless something was found already. */
async function claim(schedule: Schedule, limit: number, isAnyFound: boolean): Promise<ScheduleEntry[]> {
  try {
    return await schedule.claim(limit);
  } catch (error) {
    if (isAnyFound) return [];
    throw error;
  }
}

interface Change {
  readonly owner: Owner;
  readonly tag: string;
  readonly id: string;
  readonly writes: readonly Write[];
  readonly view: RedisView;
}

/** Where the call lies that a token is for. */
type CallPlace = [tenantTag: string, threadTag: string, callId: string];

const keysOf = ({ owner, thread_id }: Lease) => threadKeys(threadTag(owner, thread_id));

/** Only commands on a thread that the caller names have to know its tenant before it is loaded. */
function tenantOf({ owner }: ThreadRef): string {
  if (!owner) throw new Error("The thread's owner must be known.");
  return tenantTag(owner);
}

function argsOf({ key, run, next, message, inbox, call, calls }: Lookups) {
  return {
    key: key ?? "",
    run: run ?? "",
    wants_next: next ? 1 : "",
    message: message ?? "",
    wants_inbox: inbox ? 1 : "",
    call: call ?? "",
    wants_calls: calls ? 1 : "",
  };
}

function find<Name extends Write["write"]>(
  writes: readonly Write[],
  name: Name,
): Extract<Write, { write: Name }> | undefined {
  return writes.find((write): write is Extract<Write, { write: Name }> => write.write === name);
}
