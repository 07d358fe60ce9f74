// The only file that writes a run's events to Redis, together with their effects. Waits for an unreachable Redis for as
// long as a lease lasts.

import type { Lease } from "../../../agent/core/stores.ts";
import { leaseLost } from "../errors.ts";
import { type EventWrites, endIn, writesOf } from "../event-writes.ts";
import type { Limits } from "../options.ts";
import { changesThread, hasEnd, type PendingEvent, stamp } from "../outcomes.ts";
import type { EventCommitter, Batch as LeaseBatch } from "../shared/lease-writer.ts";
import type { LiveTails } from "../shared/live-tails.ts";
import type { RedisCalls } from "./bus.ts";
import type { RedisConnection } from "./connection.ts";
import { appendChanges, appendEnd, appendProgress } from "./event-scripts.ts";
import { eventsKey, tenantTag, threadKeys, threadTag } from "./keys.ts";
import { inboxOf } from "./records.ts";
import type { Replicas } from "./replicas.ts";
import { ignoreErrors, type Retention, timeText } from "./retention.ts";
import { argsOfRows } from "./row-format.ts";
import type { ScheduleEntry, ThreadSchedule } from "./schedule.ts";
import type { Channels } from "./subscriber.ts";
import { inspectLease } from "./thread-scripts.ts";
import { changesOf } from "./writes.ts";

/** The value attached to the lease is the thread's schedule entry at the time when the run was claimed. */
type Batch = LeaseBatch<ScheduleEntry>;

interface Services {
  readonly redis: RedisConnection;
  readonly replicas: Replicas;
  readonly limits: Limits;
  readonly retention: Retention;
  readonly runSchedule: ThreadSchedule;
  readonly calls: RedisCalls;
  readonly delivery: Channels;
  readonly feeds: LiveTails;
}

export function createEventCommitter(services: Services): EventCommitter<ScheduleEntry> {
  const { redis, replicas, limits, retention, runSchedule, calls, delivery, feeds } = services;
  const eventsTtl = timeText(retention.eventsMs);

  return {
    assertOpen: () => redis.assertOpen(),
    async positionOf(lease) {
      const keys = threadKeys(threadTag(lease.owner, lease.thread_id));
      const asked = { run: lease.run_id, epoch: lease.epoch };
      const found = await redis.runUntilLeaseEnds(inspectLease, keys, asked);
      if (!found) throw leaseLost(lease);
      return { batch: Number(found[1]), confirmed: Number(found[0]) };
    },
    async commit(batch) {
      if (hasEnd(batch.pending)) return commitEnd(batch);
      return batch.pending.some(changesThread) ? commitChanges(batch) : commitProgress(batch);
    },
  };

  async function commitProgress(batch: Batch): Promise<number> {
    const { lease, pending } = batch;
    return written(
      batch,
      pending,
      await redis.runUntilLeaseEnds(appendProgress, keysOf(lease), argsOf(batch), argsOfRows(pending)),
    );
  }

  async function commitChanges(batch: Batch): Promise<number> {
    const { lease, pending } = batch;
    const { numbers, rest } = detailsOf(writesOf(pending));
    const args = { ...argsOf(batch), ...numbers };
    const last = written(
      batch,
      pending,
      await redis.runUntilLeaseEnds(appendChanges, keysOf(lease), args, rest),
    );
    touch(batch.lease);
    await replicas.confirm();
    return last;
  }

  async function commitEnd(batch: Batch): Promise<number> {
    const { lease, pending } = batch;
    for (let all = writesOf(pending); ; ) {
      const { numbers, rest } = detailsOf(all);
      const args = { ...argsOf(batch), ...numbers, ...endOf(all), retention: eventsTtl };
      const [outcome, found, waiting] = await redis.runUntilLeaseEnds(appendEnd, keysOf(lease), args, rest);
      if (outcome === "lost") throw leaseLost(lease);
      if (outcome === "left") {
        all = writesOf(all.appended, { inbox: inboxOf(found), stamp: stamp(lease, limits.now()) });
        continue;
      }
      touch(lease);
      await Promise.all([follow(batch, waiting), replicas.confirm()]);
      return written(batch, all.appended, found);
    }
  }

  /** Allows any process to take the thread's next run now. If there is no next run, the thread need not be checked. */
  async function follow({ lease: { owner, thread_id }, note: entry }: Batch, waiting: number): Promise<void> {
    if (waiting > 0)
      await runSchedule.add(tenantTag(owner), threadTag(owner, thread_id), 0).then(calls.waiting, () => {});
    else if (entry) ignoreErrors(runSchedule.reschedule(entry, undefined));
  }

  function endOf({ writes }: EventWrites) {
    const end = endIn(writes);
    if (!end) throw new Error("The last event of the batch must be the end of the run.");
    return { how: JSON.stringify(end.outcome), outcome: end.thread, ttl: retention.ttlOf(end.thread) };
  }

  function argsOf({ lease, number, confirmed }: Batch) {
    const channel = delivery.channelOf(threadTag(lease.owner, lease.thread_id), lease.run_id);
    const fence = { run: lease.run_id, epoch: lease.epoch, batch: number, confirmed };
    return { ...fence, kept: limits.eventsPerRun, publish: delivery.publish, channel };
  }

  /**
   * Handles the reply. `last` is the number of the last of the `pending` events. If `last` is null, nothing was written
   * and the lease is lost.
   */
  function written({ lease }: Batch, pending: readonly PendingEvent[], last: number | null): number {
    if (last === null) throw leaseLost(lease);
    feeds.hear(lease, pending, last);
    return last;
  }

  /**
   * Updates the thread's position in its owner's list. The position may be out of date, but every change corrects it.
   */
  function touch({ owner, thread_id }: Lease): void {
    ignoreErrors(retention.changed(owner, thread_id));
  }
}

/** Returns the keys that contain a run. */
function keysOf({ owner, thread_id, run_id }: Lease) {
  const thread = threadTag(owner, thread_id);
  return { ...threadKeys(thread), events: eventsKey(thread, run_id) };
}

function detailsOf({ appended, writes }: EventWrites) {
  const rows = argsOfRows(appended);
  const { added, args } = changesOf(writes);
  return { numbers: { rows: rows.length / 2, added }, rest: [...rows, ...args] };
}
