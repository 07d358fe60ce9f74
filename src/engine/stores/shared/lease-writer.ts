// Batches the appends of runs to a store that several processes share. A run has one batch in flight at a time, which
// keeps the order. Events that it emits in the meantime go into the next batch.
//
// Progress events wait for others for up to WINDOW_MS after the last batch was sent, which limits the rate at which a
// run writes. Every other event is sent in the same tick of the event loop, together with all waiting events before it.
// If a batch fails, all later events fail too, so the log has no gaps.

import { AppError } from "../../../agent/core/errors.ts";
import type { Lease } from "../../../agent/core/stores.ts";
import { type EventName, isProgress, type StreamEvent } from "../../../protocol/event.ts";
import { leaseLost } from "../errors.ts";
import { hasEnd, type PendingEvent, pendingEvent } from "../outcomes.ts";
import { OwnerMap } from "../owner-map.ts";

const WINDOW_MS = 15;
/** The number of waiting events at which they are sent without further delay. */
const MAX_WAITING = 64;

/** Events that are written together and exactly once, even if the call is repeated. */
export interface Batch<Note> {
  readonly lease: Lease;
  /** Increases with every batch of a lease. */
  readonly number: number;
  /** The last seq that the store has confirmed. */
  readonly confirmed: number;
  readonly pending: readonly PendingEvent[];
  /** A value that the store attaches to a lease. */
  readonly note: Note | undefined;
}

/** The position up to which a lease has written. */
export type LeasePosition = Pick<Batch<unknown>, "confirmed"> & { readonly batch: number };

export interface EventCommitter<Note> {
  /** Throws if the store is closed. */
  assertOpen(): void;
  /** Resolves with the run's last seq. Throws `lease_lost` or `unavailable`. */
  commit(batch: Batch<Note>): Promise<number>;
  /**
   * Reads the confirmed position of a lease acquired before a restart or by another process. Throws `lease_lost` or
   * `unavailable`.
   */
  positionOf(lease: Lease): Promise<LeasePosition>;
}

interface QueuedBatch {
  readonly pending: PendingEvent[];
  readonly written: PromiseWithResolvers<void>;
  isUrgent: boolean;
}

/** The writer of one run under one lease. */
interface LeaseWriter<Note> {
  readonly lease: Lease;
  readonly note: Note | undefined;
  /** The store's position in the log. Undefined until the store has been asked. */
  position: { readonly batch: number; confirmed: number } | undefined;
  waiting: QueuedBatch | undefined;
  /** Settles along with the batch in flight. */
  sending: Promise<void> | undefined;
  isEnding: boolean;
  sentAt: number;
  timer: NodeJS.Timeout | undefined;
  immediate: NodeJS.Immediate | undefined;
}

export class Writer<Note = undefined> {
  readonly #committer: EventCommitter<Note>;
  readonly #writers = new OwnerMap<LeaseWriter<Note>>();

  constructor(committer: EventCommitter<Note>) {
    this.#committer = committer;
  }

  /** Call this after a run was claimed. `seq` is the run's last seq. */
  begin(lease: Lease, seq: number, note?: Note): void {
    this.#add(lease, { batch: 0, confirmed: seq }, note);
  }

  /** Call this when the lease is lost. Waiting events fail when they are sent. */
  forget(lease: Lease): void {
    this.#writers.delete(lease.owner, nameOf(lease));
  }

  /** Resolves when `events` are written. Throws `lease_lost`, `unavailable`, or an error about the events. */
  async append(lease: Lease, events: readonly StreamEvent[]): Promise<void> {
    this.#committer.assertOpen();
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

  /** Resolves when no more events are waiting, because all of them were written or have failed. */
  async flush(): Promise<void> {
    await this.#flush([...this.#writers.values()]);
  }

  /** Like `flush`, but for one lease. */
  async finish(lease: Lease): Promise<void> {
    const writer = this.#writers.get(lease.owner, nameOf(lease));
    if (writer) await this.#flush([writer]);
  }

  async #flush(writers: readonly LeaseWriter<Note>[]): Promise<void> {
    for (const writer of writers) if (writer.waiting) writer.waiting.isUrgent = true;
    for (const writer of writers) this.#schedule(writer);
    await Promise.allSettled(writers.flatMap(({ sending, waiting }) => [sending, waiting?.written.promise]));
  }

  #add(lease: Lease, position: LeaseWriter<Note>["position"], note?: Note): LeaseWriter<Note> {
    const writer: LeaseWriter<Note> = {
      lease,
      note,
      position,
      waiting: undefined,
      sending: undefined,
      isEnding: false,
      sentAt: Number.NEGATIVE_INFINITY,
      timer: undefined,
      immediate: undefined,
    };
    this.#writers.set(lease.owner, nameOf(lease), writer);
    return writer;
  }

  #schedule(writer: LeaseWriter<Note>): void {
    const { waiting } = writer;
    if (!waiting || writer.sending || writer.immediate) return;
    const wait = writer.sentAt + WINDOW_MS - performance.now();
    if (waiting.isUrgent || waiting.pending.length >= MAX_WAITING || wait <= 0)
      writer.immediate = setImmediate(() => this.#send(writer, waiting));
    else writer.timer ??= setTimeout(() => this.#send(writer, waiting), wait);
  }

  async #send(writer: LeaseWriter<Note>, { pending, written }: QueuedBatch): Promise<void> {
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

  async #write(writer: LeaseWriter<Note>, pending: readonly PendingEvent[]): Promise<void> {
    const { lease, note } = writer;
    const { batch, confirmed } = writer.position ?? (await this.#committer.positionOf(lease));
    const number = batch + 1;
    // Also set after a failure, because the batch may still arrive and must not be confused with the next one.
    writer.position = { batch: number, confirmed };
    writer.position.confirmed = await this.#committer.commit({ lease, number, confirmed, pending, note });
  }

  #fail(writer: LeaseWriter<Note>, error: unknown): void {
    writer.isEnding = false;
    takeWaiting(writer)?.written.reject(error);
    if (error instanceof AppError && error.code === "lease_lost") this.forget(writer.lease);
  }
}

const MANY: ReadonlySet<EventName> = new Set(["on_chat_model_stream", "on_tool_progress"]);
/** The first event after a start is sent at once, even though little time has passed. */
const isOneOfMany = ({ event }: PendingEvent) => MANY.has(event.event);

const nameOf = ({ thread_id, run_id, epoch }: Lease) => `${thread_id}/${run_id}/${epoch}`;

function takeWaiting(writer: LeaseWriter<unknown>): QueuedBatch | undefined {
  const { waiting } = writer;
  clearTimeout(writer.timer);
  clearImmediate(writer.immediate);
  Object.assign(writer, { timer: undefined, immediate: undefined, waiting: undefined });
  return waiting;
}
