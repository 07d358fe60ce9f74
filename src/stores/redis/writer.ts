// Appends on their way to Redis. Of each run one batch is on its way at a time, so order is kept; what is said
// meanwhile goes with the next.
//
// What only shows progress waits for others, up to WINDOW_MS after the last words before it, so that Redis sees a bounded
// rate of each run. Everything else is sent in the same turn of the event loop, and takes along what is before it. When
// a batch fails, so does all that waits behind it: nothing is left out in the middle.

import { AppError } from "../../core/errors.ts";
import { type EventName, isProgress, type StreamEvent } from "../../core/event.ts";
import type { Lease } from "../../core/stores.ts";
import { leaseLost } from "../errors.ts";
import { hasEnd, type PendingEvent, pendingEvent } from "../outcomes.ts";
import { OwnerMap } from "../owner-map.ts";
import type { EventCommitter, Target } from "./commit-events.ts";
import type { Connection } from "./connection.ts";
import { threadKeys, threadTag } from "./keys.ts";
import type { ScheduleEntry } from "./schedule.ts";
import { inspectLease } from "./thread-scripts.ts";

const WINDOW_MS = 15;
/** As many do not wait for more. */
const MAX_WAITING = 64;

interface Waiting {
  readonly pending: PendingEvent[];
  readonly written: PromiseWithResolvers<void>;
  isUrgent: boolean;
}

/** Who writes one run under one lease. */
interface LeaseWriter {
  readonly lease: Lease;
  readonly target: Target;
  readonly entry: ScheduleEntry | undefined;
  /** How far Redis is; undefined as long as it has to be asked. */
  position: { readonly batch: number; confirmed: number } | undefined;
  waiting: Waiting | undefined;
  /** Settles when the batch does that is on its way. */
  sending: Promise<void> | undefined;
  isEnding: boolean;
  sentAt: number;
  timer: NodeJS.Timeout | undefined;
  immediate: NodeJS.Immediate | undefined;
}

export class Writer {
  readonly #redis: Connection;
  readonly #committer: EventCommitter;
  readonly #writers = new OwnerMap<LeaseWriter>();

  constructor(redis: Connection, committer: EventCommitter) {
    this.#redis = redis;
    this.#committer = committer;
  }

  /** A run was claimed, whose last seq is `seq`; `entry` is its thread's in the schedule. */
  begin(lease: Lease, seq: number, entry: ScheduleEntry | undefined): void {
    this.#add(lease, { batch: 0, confirmed: seq }, entry);
  }

  /** The lease is lost: what waits fails when it is sent. */
  forget(lease: Lease): void {
    this.#writers.delete(lease.owner, nameOf(lease));
  }

  /** Resolves when `events` are written. Throws `lease_lost`, `unavailable`, or what is wrong with them. */
  async append(lease: Lease, events: readonly StreamEvent[]): Promise<void> {
    this.#redis.assertOpen();
    const pending = events.map(pendingEvent);
    const ends = hasEnd(pending);
    const writer = this.#writers.get(lease.owner, nameOf(lease)) ?? this.#add(lease, undefined);
    if (writer.isEnding) throw leaseLost(lease);
    writer.isEnding = ends;
    writer.waiting ??= { pending: [], written: Promise.withResolvers(), isUrgent: false };
    const { waiting } = writer;
    waiting.pending.push(...pending);
    waiting.isUrgent ||= !events.every(({ event }) => isProgress(event));
    this.#schedule(writer);
    return waiting.written.promise;
  }

  /** Resolves once nothing waits, written or failed. */
  async flush(): Promise<void> {
    await this.#flush([...this.#writers.values()]);
  }

  /** The same of one lease. */
  async finish(lease: Lease): Promise<void> {
    const writer = this.#writers.get(lease.owner, nameOf(lease));
    if (writer) await this.#flush([writer]);
  }

  async #flush(writers: readonly LeaseWriter[]): Promise<void> {
    for (const writer of writers) if (writer.waiting) writer.waiting.isUrgent = true;
    for (const writer of writers) this.#schedule(writer);
    await Promise.allSettled(writers.flatMap(({ sending, waiting }) => [sending, waiting?.written.promise]));
  }

  #add(lease: Lease, position: LeaseWriter["position"], entry?: ScheduleEntry): LeaseWriter {
    const writer: LeaseWriter = {
      ...{
        lease,
        entry,
        target: this.#committer.targetOf(lease),
        position,
        waiting: undefined,
        sending: undefined,
      },
      ...{ isEnding: false, sentAt: Number.NEGATIVE_INFINITY, timer: undefined, immediate: undefined },
    };
    this.#writers.set(lease.owner, nameOf(lease), writer);
    return writer;
  }

  #schedule(writer: LeaseWriter): void {
    const { waiting } = writer;
    if (!waiting || writer.sending || writer.immediate) return;
    const wait = writer.sentAt + WINDOW_MS - performance.now();
    if (waiting.isUrgent || waiting.pending.length >= MAX_WAITING || wait <= 0)
      writer.immediate = setImmediate(() => this.#send(writer, waiting));
    else writer.timer ??= setTimeout(() => this.#send(writer, waiting), wait);
  }

  async #send(writer: LeaseWriter, { pending, written }: Waiting): Promise<void> {
    takeWaiting(writer);
    writer.sending = written.promise;
    if (pending.some(isOneOfMany)) writer.sentAt = performance.now();
    try {
      await this.#write(writer, pending);
      if (writer.isEnding && !writer.waiting) this.forget(writer.lease);
      written.resolve();
    } catch (error) {
      this.#fail(writer, error);
      written.reject(error);
    } finally {
      writer.sending = undefined;
      this.#schedule(writer);
    }
  }

  async #write(writer: LeaseWriter, pending: readonly PendingEvent[]): Promise<void> {
    const { lease, target, entry } = writer;
    const { batch, confirmed } = writer.position ?? (await this.#positionOf(lease));
    const number = batch + 1;
    // Also when it fails: it may arrive yet, and must not be taken for the next one.
    writer.position = { batch: number, confirmed };
    writer.position.confirmed = await this.#committer.commit({
      lease,
      target,
      number,
      confirmed,
      pending,
      entry,
    });
  }

  /** Of a lease that another process was given, or this one in another life. */
  async #positionOf(lease: Lease): Promise<{ batch: number; confirmed: number }> {
    const keys = threadKeys(threadTag(lease.owner, lease.thread_id));
    const found = await this.#redis.runUntilLeaseEnds(inspectLease, keys, {
      run: lease.run_id,
      epoch: lease.epoch,
    });
    if (!found) throw leaseLost(lease);
    return { batch: Number(found[1]), confirmed: Number(found[0]) };
  }

  #fail(writer: LeaseWriter, error: unknown): void {
    writer.isEnding = false;
    takeWaiting(writer)?.written.reject(error);
    if (error instanceof AppError && error.code === "lease_lost") this.forget(writer.lease);
  }
}

const MANY: ReadonlySet<EventName> = new Set(["on_chat_model_stream", "on_tool_progress"]);
/** The first word after a start is not kept waiting for having come so soon. */
const isOneOfMany = ({ event }: PendingEvent) => MANY.has(event.event);

const nameOf = ({ thread_id, run_id, epoch }: Lease) => `${thread_id}/${run_id}/${epoch}`;

function takeWaiting(writer: LeaseWriter): Waiting | undefined {
  const { waiting } = writer;
  clearTimeout(writer.timer);
  clearImmediate(writer.immediate);
  Object.assign(writer, { timer: undefined, immediate: undefined, waiting: undefined });
  return waiting;
}
