// Appends on their way to Redis. Of each run one batch is on its way at a time, so order is kept; what is said
// meanwhile goes with the next.
//
// What only shows progress waits for others, up to WINDOW_MS after the last words before it, so that Redis sees a bounded
// rate of each run. Everything else is sent in the same turn of the event loop, and takes along what is before it. When
// a batch fails, so does all that waits behind it: nothing is left out in the middle.

import { AppError } from "../../core/errors.ts";
import { type EventName, isProgress, type StreamEvent } from "../../core/event.ts";
import type { Lease } from "../../core/stores.ts";
import { type Draft, draftOf, hasEnd } from "../endings.ts";
import { OwnerMap } from "../owner-map.ts";
import { leaseLost } from "../refusals.ts";
import type { Place, Recorder } from "./commit-events.ts";
import type { Connection } from "./connection.ts";
import { threadKeys, threadTag } from "./keys.ts";
import type { ScheduleEntry } from "./schedule.ts";
import { inspectLease } from "./scripts.ts";

const WINDOW_MS = 15;
/** As many do not wait for more. */
const MAX_WAITING = 64;

interface Waiting {
  readonly drafts: Draft[];
  readonly written: PromiseWithResolvers<void>;
  isUrgent: boolean;
}

/** Who writes one run under one lease. */
interface LeaseWriter {
  readonly lease: Lease;
  readonly place: Place;
  readonly entry: ScheduleEntry | undefined;
  /** How far Redis is; undefined as long as it has to be asked. */
  stand: { readonly batch: number; confirmed: number } | undefined;
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
  readonly #recorder: Recorder;
  readonly #pens = new OwnerMap<LeaseWriter>();

  constructor(redis: Connection, recorder: Recorder) {
    this.#redis = redis;
    this.#recorder = recorder;
  }

  /** A run was claimed, whose last seq is `seq`; `entry` is its thread's in the schedule. */
  begin(lease: Lease, seq: number, entry: ScheduleEntry | undefined): void {
    this.#add(lease, { batch: 0, confirmed: seq }, entry);
  }

  /** The lease is lost: what waits fails when it is sent. */
  forget(lease: Lease): void {
    this.#pens.delete(lease.owner, nameOf(lease));
  }

  /** Resolves when `events` are written. Throws `lease_lost`, `unavailable`, or what is wrong with them. */
  async append(lease: Lease, events: readonly StreamEvent[]): Promise<void> {
    this.#redis.assertOpen();
    const drafts = events.map(draftOf);
    const ends = hasEnd(drafts);
    const pen = this.#pens.get(lease.owner, nameOf(lease)) ?? this.#add(lease, undefined);
    if (pen.isEnding) throw leaseLost(lease);
    pen.isEnding = ends;
    pen.waiting ??= { drafts: [], written: Promise.withResolvers(), isUrgent: false };
    const { waiting } = pen;
    waiting.drafts.push(...drafts);
    waiting.isUrgent ||= !events.every(({ event }) => isProgress(event));
    this.#schedule(pen);
    return waiting.written.promise;
  }

  /** Resolves when nothing waits any more, whatever became of it. */
  async flush(): Promise<void> {
    await this.#flush([...this.#pens.values()]);
  }

  /** The same of one lease. */
  async finish(lease: Lease): Promise<void> {
    const pen = this.#pens.get(lease.owner, nameOf(lease));
    if (pen) await this.#flush([pen]);
  }

  async #flush(pens: readonly LeaseWriter[]): Promise<void> {
    for (const pen of pens) if (pen.waiting) pen.waiting.isUrgent = true;
    for (const pen of pens) this.#schedule(pen);
    await Promise.allSettled(pens.flatMap(({ sending, waiting }) => [sending, waiting?.written.promise]));
  }

  #add(lease: Lease, stand: LeaseWriter["stand"], entry?: ScheduleEntry): LeaseWriter {
    const pen: LeaseWriter = {
      ...{
        lease,
        entry,
        place: this.#recorder.placeOf(lease),
        stand,
        waiting: undefined,
        sending: undefined,
      },
      ...{ isEnding: false, sentAt: Number.NEGATIVE_INFINITY, timer: undefined, immediate: undefined },
    };
    this.#pens.set(lease.owner, nameOf(lease), pen);
    return pen;
  }

  #schedule(pen: LeaseWriter): void {
    const { waiting } = pen;
    if (!waiting || pen.sending || pen.immediate) return;
    const wait = pen.sentAt + WINDOW_MS - performance.now();
    if (waiting.isUrgent || waiting.drafts.length >= MAX_WAITING || wait <= 0)
      pen.immediate = setImmediate(() => this.#send(pen, waiting));
    else pen.timer ??= setTimeout(() => this.#send(pen, waiting), wait);
  }

  async #send(pen: LeaseWriter, { drafts, written }: Waiting): Promise<void> {
    takeWaiting(pen);
    pen.sending = written.promise;
    if (drafts.some(isOneOfMany)) pen.sentAt = performance.now();
    try {
      await this.#write(pen, drafts);
      if (pen.isEnding && !pen.waiting) this.forget(pen.lease);
      written.resolve();
    } catch (error) {
      this.#fail(pen, error);
      written.reject(error);
    } finally {
      pen.sending = undefined;
      this.#schedule(pen);
    }
  }

  async #write(pen: LeaseWriter, drafts: readonly Draft[]): Promise<void> {
    const { lease, place, entry } = pen;
    const { batch, confirmed } = pen.stand ?? (await this.#standOf(lease));
    const number = batch + 1;
    // Also when it fails: it may arrive yet, and must not be taken for the next one.
    pen.stand = { batch: number, confirmed };
    pen.stand.confirmed = await this.#recorder.record({ lease, place, number, confirmed, drafts, entry });
  }

  /** Of a lease that another process was given, or this one in another life. */
  async #standOf(lease: Lease): Promise<{ batch: number; confirmed: number }> {
    const keys = threadKeys(threadTag(lease.owner, lease.thread_id));
    const found = await this.#redis.runUntilLeaseEnds(inspectLease, keys, {
      run: lease.run_id,
      epoch: lease.epoch,
    });
    if (!found) throw leaseLost(lease);
    return { batch: Number(found[1]), confirmed: Number(found[0]) };
  }

  #fail(pen: LeaseWriter, error: unknown): void {
    pen.isEnding = false;
    takeWaiting(pen)?.written.reject(error);
    if (error instanceof AppError && error.code === "lease_lost") this.forget(pen.lease);
  }
}

const MANY: ReadonlySet<EventName> = new Set(["on_chat_model_stream", "on_tool_progress"]);
/** The first word after a start is not kept waiting for having come so soon. */
const isOneOfMany = ({ event }: Draft) => MANY.has(event.event);

const nameOf = ({ thread_id, run_id, epoch }: Lease) => `${thread_id}/${run_id}/${epoch}`;

function takeWaiting(pen: LeaseWriter): Waiting | undefined {
  const { waiting } = pen;
  clearTimeout(pen.timer);
  clearImmediate(pen.immediate);
  Object.assign(pen, { timer: undefined, immediate: undefined, waiting: undefined });
  return waiting;
}
