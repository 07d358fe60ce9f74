// The one place where a run's events are written to Redis, together with what they mean. A Redis that is away is waited
// for as long as a lease lasts.

import type { Lease } from "../../core/stores.ts";
import { leaseLost } from "../errors.ts";
import type { Limits } from "../options.ts";
import {
  changeOf,
  endingIn,
  hasEnd,
  type PendingEvent,
  stamp,
  THREAD_STATUS,
  withUnreadInbox,
} from "../outcomes.ts";
import type { RedisCalls } from "./bus.ts";
import type { Connection } from "./connection.ts";
import { appendChanges, appendEnd, appendProgress } from "./event-scripts.ts";
import { eventsKey, type ThreadKeys, tenantTag, threadKeys, threadTag } from "./keys.ts";
import { ignoreErrors, type Lifetime, timeText } from "./lifetime.ts";
import type { LiveTails } from "./live-tails.ts";
import { inboxOf } from "./records.ts";
import type { Replicas } from "./replicas.ts";
import { argsOfRows } from "./row-format.ts";
import type { Schedule, ScheduleEntry } from "./schedule.ts";
import type { Channels } from "./subscriber.ts";
import { changesOf } from "./writes.ts";

/** The keys that hold a run and the channel on which its events are published. */
export interface Target {
  readonly keys: ThreadKeys & { readonly events: string };
  readonly channel: string;
}

/** Events that are written together and exactly once, even when the call is repeated. */
export interface Batch {
  readonly lease: Lease;
  readonly target: Target;
  /** Grows with every batch of a lease. */
  readonly number: number;
  /** The last seq that Redis has confirmed. */
  readonly confirmed: number;
  readonly pending: readonly PendingEvent[];
  /** That of the thread, as it was when the run was claimed. */
  readonly entry: ScheduleEntry | undefined;
}

export interface EventCommitter {
  targetOf(lease: Lease): Target;
  /** Resolves with the run's last seq. Throws `lease_lost`, `unavailable`. */
  commit(batch: Batch): Promise<number>;
}

interface Services {
  readonly redis: Connection;
  readonly replicas: Replicas;
  readonly limits: Limits;
  readonly lifetime: Lifetime;
  readonly runSchedule: Schedule;
  readonly calls: RedisCalls;
  readonly delivery: Channels;
  readonly feeds: LiveTails;
}

export function createEventCommitter(services: Services): EventCommitter {
  const { redis, replicas, limits, lifetime, runSchedule, calls, delivery, feeds } = services;
  const retention = timeText(limits.eventRetentionMs);

  return {
    targetOf({ owner, thread_id, run_id }) {
      const thread = threadTag(owner, thread_id);
      const keys = { ...threadKeys(thread), events: eventsKey(thread, run_id) };
      return { keys, channel: delivery.channelOf(thread, run_id) };
    },
    async commit(batch) {
      if (hasEnd(batch.pending)) return commitEnd(batch);
      return batch.pending.some((pending) => changeOf(pending))
        ? commitChanges(batch)
        : commitProgress(batch);
    },
  };

  async function commitProgress(batch: Batch): Promise<number> {
    const { target, pending } = batch;
    return written(
      batch,
      pending,
      await redis.runUntilLeaseEnds(appendProgress, target.keys, argsOf(batch), argsOfRows(pending)),
    );
  }

  async function commitChanges(batch: Batch): Promise<number> {
    const { target, pending } = batch;
    const { numbers, rest } = detailsOf(pending);
    const args = { ...argsOf(batch), ...numbers };
    const last = written(
      batch,
      pending,
      await redis.runUntilLeaseEnds(appendChanges, target.keys, args, rest),
    );
    touch(batch.lease);
    await replicas.confirm();
    return last;
  }

  async function commitEnd(batch: Batch): Promise<number> {
    const { lease } = batch;
    for (let pending = batch.pending; ; ) {
      const { numbers, rest } = detailsOf(pending);
      const args = { ...argsOf(batch), ...numbers, ...endOf(pending), retention };
      const [outcome, found, waiting] = await redis.runUntilLeaseEnds(
        appendEnd,
        batch.target.keys,
        args,
        rest,
      );
      if (outcome === "lost") throw leaseLost(lease);
      if (outcome === "left") {
        pending = withUnreadInbox(pending, inboxOf(found), stamp(lease, limits.now()));
        continue;
      }
      touch(lease);
      await Promise.all([follow(batch, waiting), replicas.confirm()]);
      return written(batch, pending, found);
    }
  }

  /** Any process may take the thread's next run now. Without one the thread need not be checked. */
  async function follow({ lease: { owner, thread_id }, entry }: Batch, waiting: number): Promise<void> {
    if (waiting > 0)
      await runSchedule.add(tenantTag(owner), threadTag(owner, thread_id), 0).then(calls.waiting, () => {});
    else if (entry) ignoreErrors(runSchedule.reschedule(entry, undefined));
  }

  function endOf(pending: readonly PendingEvent[]) {
    const ending = endingIn(pending);
    const outcome = THREAD_STATUS[ending.status];
    return { how: JSON.stringify(ending), outcome, ttl: lifetime.ttlOf(outcome) };
  }

  function argsOf({ lease, target, number, confirmed }: Batch) {
    const fence = { run: lease.run_id, epoch: lease.epoch, batch: number, confirmed };
    return { ...fence, kept: limits.eventsPerRun, publish: delivery.publish, channel: target.channel };
  }

  /** `pending` are written, the last one as `last`; or nothing is, and that is lost. */
  function written({ lease }: Batch, pending: readonly PendingEvent[], last: number | null): number {
    if (last === null) throw leaseLost(lease);
    feeds.hear(lease, pending, last);
    return last;
  }

  /** The thread's place in its owner's list may be late, but not wrong for long: every change brings it up to date. */
  function touch({ owner, thread_id }: Lease): void {
    ignoreErrors(lifetime.changed(owner, thread_id));
  }
}

function detailsOf(pending: readonly PendingEvent[]) {
  const rows = argsOfRows(pending);
  const { added, args } = changesOf(pending);
  return { numbers: { rows: rows.length / 2, added }, rest: [...rows, ...args] };
}
