// Applies decisions about a thread to Redis: one script loads the thread, and another carries out the writes if the
// thread has not changed since. Data outside the thread's slot includes the thread's schedule, its position in the
// owner's list, and call tokens. It is written before the thread refers to it and removed after the last reference.

import { LRUCache } from "lru-cache";
import { atMost } from "../../../lib/lru.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { changeVersioned, type Kernel } from "../kernel.ts";
import { withTimeout } from "../shared/outages.ts";
import {
  type Decision,
  headAfter,
  type Lookups,
  needsRoom,
  runAhead,
  type View,
  type Write,
} from "../thread-head.ts";
import { commitAdding, commitAlways } from "./commit-script.ts";
import { isLarge } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { type CommittedChange, find, followUps } from "./follow-ups.ts";
import { DEDUPE_TTL_MS, deletedKey, eventsKey, tenantTag, threadIdOf, threadKeys } from "./keys.ts";
import { NO_THREAD, type RedisView, viewOf } from "./records.ts";
import { timeText } from "./retention.ts";
import type { ScheduleEntry } from "./schedule.ts";
import { loadThread, type ThreadReply } from "./thread-scripts.ts";
import { argsOfWrite } from "./writes.ts";

/**
 * The number of free threads to remember that were recently read or changed. Decisions about a run on one of these
 * threads do not require loading the thread.
 */
const LATELY_SEEN = 256;
/** The number of milliseconds for which a change waits for another change of the same thread. */
const TURN_MS = 1_000;

export interface ThreadRef {
  readonly tag: string;
  /** Absent if the thread was found through a schedule or a token. */
  readonly owner?: Owner | undefined;
  /** The schedule entry of a claimed thread. */
  readonly entry?: ScheduleEntry | undefined;
}

export interface ThreadChanges {
  readonly change: Kernel<ThreadRef>["change"];
  load(thread: ThreadRef, lookups: Lookups): Promise<RedisView>;
  /** Records a thread that was read. The decision about a run that starts soon afterwards is based on this view. */
  keep(tag: string, view: RedisView): void;
  /**
   * Returns by how many milliseconds to extend leases that could not be renewed while Redis was unreachable. Expired
   * leases stay expired.
   */
  graceMs(): number;
}

export function createChanges(context: StoreContext): ThreadChanges {
  const { redis, limits, retention, runSchedule, calls, delivery, writer } = context;
  const { leaseMs } = limits;
  const { prepare, followUp } = followUps(context);
  const latelySeen = new LRUCache<string, RedisView>(atMost(LATELY_SEEN));
  const turns = new Map<string, Promise<void>>();
  const fixed = {
    lease_ms: leaseMs,
    ttl: retention.ttlOf("idle"),
    interrupted_ttl: retention.ttlOf("interrupted"),
    retention: timeText(retention.eventsMs),
    publish: delivery.publish,
    dedupe_ms: DEDUPE_TTL_MS,
  };

  return {
    change,
    load,
    keep(tag, view) {
      if (view.head && runAhead(view.head) === undefined) latelySeen.set(tag, view);
    },
    graceMs: () => redis.outages.graceMs(leaseMs),
  };

  async function change<R>(
    ref: ThreadRef,
    lookups: Lookups,
    decide: (view: View) => Decision<R>,
  ): Promise<R> {
    const { tag } = ref;
    const { after, isLikelyNew } = lookups;
    if (after) await writer.finish(after);
    const { others: busyThreads, added } = lookups.busyThreads
      ? await runSchedule.addWithin(limits.tenantQueueLength, tenantOf(ref), tag)
      : {};
    const guess = isLikelyNew ? (latelySeen.get(tag) ?? NO_THREAD) : undefined;
    latelySeen.delete(tag);
    let tell: Decision<R>["tell"];
    let mayWrite = false;
    const decideOnAll = (view: View) => {
      mayWrite = false;
      const decision = decide({ ...view, busyThreads });
      tell = decision.tell;
      mayWrite = decision.writes.length > 0;
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
      const result = await changeVersioned(store, decideOnAll, guess);
      if (tell?.call === "stop") calls.publish(tell);
      if (tell?.call === "waiting") await wakeNow(tenantOf(ref), tag);
      return result;
    } finally {
      endTurn?.();
      // If no run was added, the thread does not count as busy.
      if (added && !mayWrite) await runSchedule.reschedule(added, undefined).catch(() => {});
      if (after) writer.forget(after);
    }
  }

  /** Queues changes of one thread that collided in this process. Even without this, no commit is lost. */
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

  async function commit(
    ref: ThreadRef,
    lookups: Lookups,
    { view, writes, id }: { view: RedisView; writes: readonly Write[]; id: string },
  ): Promise<{ at: number } | { newer: RedisView }> {
    const { tag } = ref;
    const owner = view.head?.owner ?? ref.owner;
    if (!owner) throw new Error("Only a thread that is there can be changed without its owner.");
    const change: CommittedChange = { owner, tag, id: threadIdOf(tag), writes, view };
    const hold = find(writes, "hold_run");
    const rest = writes.flatMap((write) => argsOfWrite(write, owner, tag));
    // One connection to a single Redis keeps commands in order.
    const keepsOrder = !delivery.isCluster && !isLarge(rest);
    const { noted } = await prepare(change, lookups, keepsOrder);
    const args = {
      ...argsOf(lookups),
      ...fixed,
      id,
      expected: view.seen,
      held_until: (hold ?? find(writes, "renew_run")) && view.head?.active ? view.heldUntil : "",
      new_run: find(writes, "add_run")?.run.id ?? "",
      channel: delivery.channelOf(tag, find(writes, "cancel_run")?.run ?? ""),
      stream: eventsKey(tag, ""),
      deleted: deletedKey(tag, id),
    };
    const script = writes.some(needsRoom) ? commitAdding : commitAlways;
    const reply = await redis.runFor(owner.tenant)(script, threadKeys(tag), args, rest);
    if (reply[0] === 0) return { newer: asView(tag, reply[1]) };
    const [, at, seq, seen] = reply;
    await followUp(change, at);
    const head = writes.reduce((before, write) => headAfter(before, write, owner), view.head);
    if (head && runAhead(head) === undefined) latelySeen.set(tag, { ...NO_THREAD, head, seen });
    if (hold) {
      const lease = { owner, thread_id: change.id, run_id: hold.run, epoch: hold.epoch };
      writer.begin(lease, Number(seq), ref.entry ?? (await noted.catch(() => undefined)));
    }
    return { at };
  }

  /** Lets any process take the thread's next run now. If this fails, the run is found later. */
  async function wakeNow(tenant: string, tag: string): Promise<void> {
    await runSchedule.add(tenant, tag, 0).then(calls.waiting, () => {});
  }

  function asView(tag: string, reply: ThreadReply): RedisView {
    return viewOf(threadIdOf(tag), reply, redis.outages.graceMs(leaseMs));
  }
}

/**
 * Only commands whose caller names the thread, and therefore its owner, need the tenant before the thread is loaded.
 */
function tenantOf({ owner }: ThreadRef): string {
  if (!owner) throw new Error("The thread's owner must be known.");
  return tenantTag(owner);
}

function argsOf({ key, run, next, message, last, inbox, call, calls }: Lookups) {
  return {
    key: key ?? "",
    run: run ?? "",
    wants_next: next ? 1 : "",
    message: message ?? "",
    wants_inbox: inbox ? 1 : "",
    call: call ?? "",
    wants_calls: calls ? 1 : "",
    last: last ?? "",
  };
}
