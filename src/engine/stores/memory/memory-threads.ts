// All threads in memory: their owners and sizes, and the order in which they are compressed or dropped. Threads are
// dropped when they expire or memory is full.
//
// A thread with an active or waiting run is never dropped. If a tenant that uses a quarter of the memory needs more, it
// loses its own threads. Otherwise, the tenant that uses the most memory loses threads. Within a tenant, the least
// recently used threads go first, and threads that wait for a person's answer go last.

import { AppError } from "../../../agent/core/errors.ts";
import { losers } from "../../../agent/core/shares.ts";
import type { Lease } from "../../../agent/core/stores.ts";
import type { Owner } from "../../../protocol/ids.ts";
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
import { ThreadLists } from "./thread-lists.ts";

export interface Bounds {
  /** The maximum size in bytes of all threads. */
  readonly maxBytes: number;
  /** The maximum size in bytes of uncompressed idle threads. */
  readonly uncompressedBytes: number;
}

/** The maximum size in bytes of a thread to compress. Compressing a larger thread would delay all other work. */
const MAX_COMPRESSED_BYTES = 256 * 1024;

/** The threads of a tenant. */
interface TenantEntry {
  bytes: number;
  /** The threads that can be dropped, least recently used first. */
  readonly idle: Set<ThreadEntry>;
  readonly interrupted: Set<ThreadEntry>;
}

export class MemoryThreads {
  readonly limits: Limits;
  readonly turns: FairQueue<ThreadEntry>;
  readonly calls = new ControlChannel();
  readonly #bounds: Bounds;
  readonly #threads = new OwnerMap<ThreadEntry>();
  readonly #lists = new ThreadLists();
  /** The threads that can be dropped, least recently used first. */
  readonly #idle = new Set<ThreadEntry>();
  readonly #interrupted = new Set<ThreadEntry>();
  readonly #tenants = new Map<string, TenantEntry>();
  /** The uncompressed threads that can be dropped, least recently used first, and their total size in bytes. */
  readonly #uncompressed = new Set<ThreadEntry>();
  #uncompressedBytes = 0;
  /** Deferred calls by token hash. */
  readonly #deferred = new Map<string, DeferredEntry>();
  /** Ended runs whose log is still stored, in the order in which they ended. */
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
    if (thread && this.isDue(thread)) this.remove(thread);
    else if (thread) this.touch(thread);
    return thread && this.#threads.get(owner, id);
  }

  findRun(owner: Owner, threadId: string, runId: string): RunEntry | undefined {
    return this.find(owner, threadId)?.runs.findLast((run) => run.id === runId);
  }

  /** Returns the run of `lease`. Throws `lease_lost`. */
  leased(lease: Lease): LiveRun {
    this.assertOpen();
    const thread = this.#threads.get(lease.owner, lease.thread_id);
    const { active } = thread?.head ?? {};
    if (active?.run !== lease.run_id || active.epoch !== lease.epoch || !thread?.isHeld)
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

  /** Yields the deferred calls of all threads. */
  deferredCalls(): Iterable<DeferredEntry> {
    this.assertOpen();
    return this.#deferred.values();
  }

  /** Returns the owner's threads, or only the threads below `parent`, oldest change first. Some may have expired. */
  threadsOf(owner: Owner, parent?: string): readonly ThreadEntry[] {
    this.assertOpen();
    return this.#lists.of(owner, parent);
  }

  /** Returns up to `limit` owners of threads as `ownerText`, in order, after `after` and before `before`. */
  ownersBetween(after: string, before: string, limit: number): string[] {
    this.assertOpen();
    return this.#lists.ownersBetween(after, before, limit);
  }

  add(thread: ThreadEntry): void {
    this.#threads.set(thread.owner, thread.id, thread);
    this.#lists.add(thread);
    this.#count(thread, thread.bytes);
    this.touch(thread);
  }

  remove(thread: ThreadEntry): void {
    this.#threads.delete(thread.owner, thread.id);
    this.#lists.remove(thread);
    this.#take(thread);
    for (const run of thread.runs) this.forgetEvents(run);
    this.forgetCalls(thread);
    this.#count(thread, -thread.bytes);
  }

  /** Returns the number of threads that wait for an answer while their parents do not. */
  countInterrupted(): number {
    const asking = [...this.#interrupted].filter(({ parent }) => parent?.background ?? true);
    return asking.length;
  }

  /**
   * Call this after every use and every status change. The thread's parts stay valid until the next tick of the event
   * loop.
   */
  touch(thread: ThreadEntry): void {
    thread.usedAt = this.limits.now();
    this.#take(thread);
    this.#uncompress(thread);
    const { tenant } = thread.owner;
    if (thread.head.queue.length > 0 && !thread.head.active) this.turns.wait(tenant, thread);
    if (isBusy(thread)) return;
    this.turns.drop(tenant, thread);
    const kind = thread.outcome === "interrupted" ? "interrupted" : "idle";
    (kind === "idle" ? this.#idle : this.#interrupted).add(thread);
    this.#tenants.get(tenant)?.[kind].add(thread);
    this.#uncompressed.add(thread);
    this.#uncompressedBytes += thread.bytes;
    this.#compressOthers(thread);
  }

  /** Records that the thread was changed at `at`. */
  change(thread: ThreadEntry, at: number): void {
    if (thread.updatedAt !== at) this.#lists.move(thread, at);
  }

  weigh(thread: ThreadEntry, bytes: number): void {
    thread.bytes += bytes;
    this.#count(thread, bytes);
    if (this.#uncompressed.has(thread)) this.#uncompressedBytes += bytes;
  }

  /**
   * Drops threads other than `except` until there is room for the tenant. If nothing can be dropped, throws
   * `limit_exceeded` if the tenant uses its full share of the memory, and `unavailable` otherwise.
   */
  makeRoom(tenant: string, except?: ThreadEntry): void {
    const { maxBytes } = this.#bounds;
    while (this.#bytes >= maxBytes) {
      const held = new Map([...this.#tenants].map(([name, { bytes }]) => [name, bytes]));
      const order = losers(held, tenant);
      const dropped = order.map((name) => this.#oldestOf(name, except)).find((found) => found !== undefined);
      if (dropped) this.remove(dropped);
      else if (order.length === 1 && held.size > 1) throw hasItsShare(held.get(tenant) ?? 0, maxBytes);
      else throw allInUse(maxBytes);
    }
  }

  /** Keeps the events of an ended run until they expire. */
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

  /** Replaces the stored call. */
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

  /** Deletes expired threads and events. The cost depends only on how many have expired. */
  sweep(): void {
    for (const run of this.#ended) {
      if (!this.eventsAreDue(run)) break;
      this.forgetEvents(run);
    }
    for (const droppable of [this.#idle, this.#interrupted])
      for (const thread of droppable) {
        if (!this.isDue(thread)) break;
        this.remove(thread);
      }
  }

  /** Closes all logs. Waiting readers get `unavailable`. */
  close(): void {
    this.#closed = true;
    this.calls.close();
    for (const thread of this.#threads.values()) for (const run of thread.runs) run.log?.close(storeClosed());
  }

  #oldestOf(tenant: string, except: ThreadEntry | undefined): ThreadEntry | undefined {
    const { idle = [], interrupted = [] } = this.#tenants.get(tenant) ?? {};
    for (const droppable of [idle, interrupted])
      for (const thread of droppable) if (thread !== except) return thread;
    return undefined;
  }

  /** Adds or subtracts bytes for the thread's tenant. */
  #count({ owner: { tenant } }: ThreadEntry, bytes: number): void {
    const entry = this.#tenants.get(tenant) ?? { bytes: 0, idle: new Set(), interrupted: new Set() };
    entry.bytes += bytes;
    this.#bytes += bytes;
    if (entry.bytes > 0) this.#tenants.set(tenant, entry);
    else this.#tenants.delete(tenant);
  }

  /** Removes the thread from all lists of threads that can be dropped. */
  #take(thread: ThreadEntry): void {
    this.#idle.delete(thread);
    this.#interrupted.delete(thread);
    const own = this.#tenants.get(thread.owner.tenant);
    own?.idle.delete(thread);
    own?.interrupted.delete(thread);
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
      // A reader looks up the log again when it needs the next entries.
      run.log?.drop();
    }
    thread.compressed = compressed;
    thread.messages = [];
    thread.ids = undefined;
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

  isDue(thread: ThreadEntry): boolean {
    if (isBusy(thread)) return false;
    const { threadTtlMs, interruptedTtlMs, now } = this.limits;
    const ttl = thread.outcome === "interrupted" ? Math.max(interruptedTtlMs, threadTtlMs) : threadTtlMs;
    return thread.usedAt + ttl <= now();
  }
}

function hasItsShare(bytes: number, maxBytes: number): AppError {
  return new AppError(
    "limit_exceeded",
    `Your tenant's threads use ${bytes} of the ${maxBytes} bytes of memory for threads (\`retention.memory_bytes\`), which is its share, and all of them are in use. Try again later.`,
    { details: { limit: "retention.memory_bytes", of: "tenant", most: Math.floor(maxBytes / 4) } },
  );
}

function allInUse(maxBytes: number): AppError {
  return new AppError(
    "unavailable",
    `The memory for threads (${maxBytes} bytes) is full, and every thread is in use. Try again later.`,
  );
}

function deferredBytes({ deferred }: ThreadEntry): number {
  let bytes = 0;
  for (const call of deferred?.values() ?? []) bytes += call.bytes;
  return bytes;
}
