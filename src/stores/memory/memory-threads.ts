// Every thread in memory: whose it is, what it weighs, and which one is compressed, or goes, when room or time is up.
//
// A thread with a run that is active or waits is never dropped. Of the others, those go first that were not
// used for the longest time; those that wait for a person's answer go last.

import { AppError } from "../../core/errors.ts";
import type { Owner } from "../../core/ids.ts";
import type { Lease } from "../../core/stores.ts";
import { leaseLost, storeClosed } from "../errors.ts";
import { FairQueue } from "../fair-queue.ts";
import { ControlChannel } from "../local-bus.ts";
import type { Limits } from "../options.ts";
import { OwnerMap } from "../owner-map.ts";
import { compress, uncompress } from "./compression.ts";
import {
  collectionBytes,
  type DeferredEntry,
  isBusy,
  isLive,
  type LiveRun,
  type RunEntry,
  THREAD_BYTES,
  type ThreadEntry,
} from "./records.ts";

export interface Bounds {
  /** Of all threads. */
  readonly maxBytes: number;
  /** Of those that are idle and not compressed. */
  readonly uncompressedBytes: number;
}

/** A thread that weighs more is not compressed: it would keep everybody waiting. */
const MAX_COMPRESSED_BYTES = 256 * 1024;

export class MemoryThreads {
  readonly limits: Limits;
  readonly turns: FairQueue<ThreadEntry>;
  readonly calls = new ControlChannel();
  readonly #bounds: Bounds;
  readonly #threads = new OwnerMap<ThreadEntry>();
  /** What may be dropped, least recently used first. */
  readonly #idle = new Set<ThreadEntry>();
  readonly #interrupted = new Set<ThreadEntry>();
  /** Those of them that are not compressed, in the same order, and what they weigh. */
  readonly #uncompressed = new Set<ThreadEntry>();
  #uncompressedBytes = 0;
  /** By the hashes of their tokens. */
  readonly #deferred = new Map<string, DeferredEntry>();
  /** Runs that have ended and whose log is still here, in the order of their end. */
  readonly #ended = new Set<RunEntry>();
  #bytes = 0;
  #closed = false;

  constructor(limits: Limits, bounds: Bounds) {
    this.limits = limits;
    this.turns = new FairQueue(limits);
    this.#bounds = bounds;
  }

  assertOpen(): void {
    if (this.#closed) throw storeClosed();
  }

  /** Finds the thread and restarts its time to live. */
  find(owner: Owner, id: string): ThreadEntry | undefined {
    this.assertOpen();
    const thread = this.#threads.get(owner, id);
    if (thread && this.#isDue(thread)) this.remove(thread);
    else if (thread) this.touch(thread);
    return thread && this.#threads.get(owner, id);
  }

  findRun(owner: Owner, threadId: string, runId: string): RunEntry | undefined {
    return this.find(owner, threadId)?.runs.findLast((run) => run.id === runId);
  }

  /** The run that `lease` is for. Throws `lease_lost`. */
  leased(lease: Lease): LiveRun {
    this.assertOpen();
    const thread = this.#threads.get(lease.owner, lease.thread_id);
    const { active } = thread?.head ?? {};
    if (active?.run !== lease.run_id || active.epoch !== lease.epoch || thread?.until === 0)
      throw leaseLost(lease);
    const run = thread?.runs.findLast(({ id }) => id === lease.run_id);
    if (!run || !isLive(run)) throw leaseLost(lease);
    return run;
  }

  /** Finds the call of a token and restarts its thread's time to live. */
  findCall(tokenHash: string): DeferredEntry | undefined {
    this.assertOpen();
    const thread = this.#deferred.get(tokenHash)?.thread;
    if (thread) this.find(thread.owner, thread.id);
    return this.#deferred.get(tokenHash);
  }

  /** The calls of all threads whose results come later. */
  deferredCalls(): Iterable<DeferredEntry> {
    this.assertOpen();
    return this.#deferred.values();
  }

  threadsOf(owner: Owner): ThreadEntry[] {
    this.assertOpen();
    return this.#threads.of(owner).filter((thread) => !this.#isDue(thread));
  }

  add(thread: ThreadEntry): void {
    this.#threads.set(thread.owner, thread.id, thread);
    this.#bytes += thread.bytes;
    this.touch(thread);
  }

  remove(thread: ThreadEntry): void {
    this.#threads.delete(thread.owner, thread.id);
    this.#take(thread);
    for (const run of thread.runs) this.forgetEvents(run);
    this.forgetCalls(thread);
    this.#bytes -= thread.bytes;
  }

  /** Call it after every use and every change of what a thread is at. Its parts can be relied on until the next turn. */
  touch(thread: ThreadEntry): void {
    thread.usedAt = this.limits.now();
    this.#take(thread);
    this.#uncompress(thread);
    const { tenant } = thread.owner;
    if (thread.head.queue.length > 0 && !thread.head.active) this.turns.wait(tenant, thread);
    if (isBusy(thread)) return;
    this.turns.drop(tenant, thread);
    (thread.outcome === "interrupted" ? this.#interrupted : this.#idle).add(thread);
    this.#uncompressed.add(thread);
    this.#uncompressedBytes += thread.bytes;
    this.#compressOthers(thread);
  }

  weigh(thread: ThreadEntry, bytes: number): void {
    thread.bytes += bytes;
    this.#bytes += bytes;
    if (this.#uncompressed.has(thread)) this.#uncompressedBytes += bytes;
  }

  /**
   * Drops threads other than `except` until there is room for more. Throws `unavailable` when what is left
   * cannot be dropped.
   */
  makeRoom(except?: ThreadEntry): void {
    if (this.#bytes < this.#bounds.maxBytes) return;
    for (const droppable of [this.#idle, this.#interrupted])
      for (const thread of droppable) {
        if (thread !== except) this.remove(thread);
        if (this.#bytes < this.#bounds.maxBytes) return;
      }
    throw new AppError(
      "unavailable",
      `The memory for threads (${this.#bounds.maxBytes} bytes) is full, and all of them are in use. Try again later.`,
    );
  }

  /** Keeps the events of a run that has ended until they are due. */
  retain(run: RunEntry): void {
    this.#ended.add(run);
  }

  eventsAreDue(run: RunEntry): boolean {
    return run.endedAt !== undefined && run.endedAt + this.limits.eventRetentionMs <= this.limits.now();
  }

  forgetEvents(run: RunEntry): void {
    this.#ended.delete(run);
    if (!run.log) return;
    this.weigh(run.thread, -run.log.bytes);
    run.log.drop();
    run.log = undefined;
  }

  /** In place of what was kept of the call. */
  keepCall(entry: DeferredEntry): void {
    const { thread, call, bytes } = entry;
    const old = thread.deferred?.get(call.call_id);
    if (old) this.forgetCall(old);
    thread.deferred ??= new Map();
    thread.deferred.set(call.call_id, entry);
    this.#deferred.set(call.token_hash, entry);
    this.weigh(thread, bytes);
  }

  forgetCall({ thread, call, bytes }: DeferredEntry): void {
    thread.deferred?.delete(call.call_id);
    if (thread.deferred?.size === 0) thread.deferred = undefined;
    this.#deferred.delete(call.token_hash);
    this.weigh(thread, -bytes);
  }

  forgetCalls(thread: ThreadEntry): void {
    for (const call of thread.deferred?.values() ?? []) this.forgetCall(call);
  }

  /** Lets go what is due. Costs what goes, not what is here. */
  sweep(): void {
    for (const run of this.#ended) {
      if (!this.eventsAreDue(run)) break;
      this.forgetEvents(run);
    }
    for (const droppable of [this.#idle, this.#interrupted])
      for (const thread of droppable) {
        if (!this.#isDue(thread)) break;
        this.remove(thread);
      }
  }

  /** Readers who wait get `unavailable`. */
  close(): void {
    this.#closed = true;
    this.calls.close();
    for (const thread of this.#threads.values()) for (const run of thread.runs) run.log?.close(storeClosed());
  }

  /** Out of every order that it stands in. */
  #take(thread: ThreadEntry): void {
    this.#idle.delete(thread);
    this.#interrupted.delete(thread);
    if (this.#uncompressed.delete(thread)) this.#uncompressedBytes -= thread.bytes;
  }

  #compressOthers(thread: ThreadEntry): void {
    for (const oldest of this.#uncompressed) {
      if (oldest === thread || this.#uncompressedBytes <= this.#bounds.uncompressedBytes) return;
      this.#uncompressed.delete(oldest);
      this.#uncompressedBytes -= oldest.bytes;
      if (oldest.bytes <= MAX_COMPRESSED_BYTES) this.#compress(oldest);
    }
  }

  #compress(thread: ThreadEntry): void {
    const compressed = { text: compress(thread), bytes: thread.bytes };
    for (const run of thread.runs) {
      this.#ended.delete(run);
      // A reader looks it up again when it needs the next entries.
      run.log?.drop();
    }
    thread.compressed = compressed;
    thread.messages = [];
    thread.state = undefined;
    thread.runs = [];
    this.weigh(
      thread,
      THREAD_BYTES + compressed.text.length + deferredBytes(thread) + collectionBytes(thread) - thread.bytes,
    );
  }

  #uncompress(thread: ThreadEntry): void {
    const { compressed } = thread;
    if (!compressed) return;
    uncompress(thread, compressed.text, this.limits.eventsPerRun);
    thread.compressed = undefined;
    this.weigh(thread, compressed.bytes - thread.bytes);
    for (const run of thread.runs) if (run.log) this.retain(run);
  }

  #isDue(thread: ThreadEntry): boolean {
    if (isBusy(thread)) return false;
    const { threadTtlMs, interruptedTtlMs, now } = this.limits;
    const ttl = thread.outcome === "interrupted" ? Math.max(interruptedTtlMs, threadTtlMs) : threadTtlMs;
    return thread.usedAt + ttl <= now();
  }
}

function deferredBytes({ deferred }: ThreadEntry): number {
  let bytes = 0;
  for (const call of deferred?.values() ?? []) bytes += call.bytes;
  return bytes;
}
