// What the toy keeps: JSON texts under names, as a folder of files would. What is read is a copy; only what is written stays.

import type { DeferredCall } from "../../../../src/agent/core/deferred-calls.ts";
import type { UserMessage } from "../../../../src/agent/core/message.ts";
import type { Thread } from "../../../../src/agent/core/records.ts";
import type { Lease, RunKey } from "../../../../src/agent/core/stores.ts";
import { eventsExpired, leaseLost, noSuchRun, storeClosed } from "../../../../src/engine/stores/errors.ts";
import { FairQueue } from "../../../../src/engine/stores/fair-queue.ts";
import { Log } from "../../../../src/engine/stores/log.ts";
import { DEFAULTS, type Limits, type StoreOptions } from "../../../../src/engine/stores/options.ts";
import type { MessageText } from "../../../../src/engine/stores/outcomes.ts";
import { ownerText, threadText } from "../../../../src/engine/stores/row-keys.ts";
import { runAhead, type StoredRun, type ThreadHead } from "../../../../src/engine/stores/thread-head.ts";
import type { Owner } from "../../../../src/protocol/ids.ts";

export interface ThreadFile {
  readonly head: ThreadHead;
  /** Its status is that of a thread without runs. */
  readonly thread: Thread;
  readonly messages: readonly MessageText[];
  /** Pairs, since `__proto__` is a name like any other. */
  readonly state: readonly (readonly [string, unknown])[];
  /** Oldest first, with their idempotency keys. */
  readonly runs: readonly (StoredRun & { readonly key: string | undefined })[];
  /** The ids of the runs that began, in their order. */
  readonly begun: readonly string[];
  readonly inbox: readonly UserMessage[];
  /** Whether a process has the active run. */
  readonly isHeld: boolean;
  readonly calls: readonly DeferredCall[];
  /** When the calls must be looked at. */
  readonly callsAt?: number;
}

export const nameOf = (owner: Owner, id: string): string => threadText([ownerText(owner), id]);

export class Files {
  readonly limits: Limits;
  readonly busy: FairQueue<string>;
  readonly #texts = new Map<string, string>();
  readonly #usedAt = new Map<string, number>();
  readonly #logs = new Map<string, Log>();
  #isClosed = false;

  constructor(options: StoreOptions) {
    this.limits = { ...DEFAULTS, ...options };
    this.busy = new FairQueue(this.limits);
  }

  close(): void {
    this.#isClosed = true;
    for (const log of this.#logs.values()) log.close(storeClosed());
  }

  /** Throws `unavailable` once the store is closed, as all that reads does. */
  names(prefix: string): string[] {
    if (this.#isClosed) throw storeClosed();
    return [...this.#texts.keys()].filter((name) => name.startsWith(prefix));
  }

  read<T>(name: string): T | undefined {
    if (this.#isClosed) throw storeClosed();
    return JSON.parse(this.#texts.get(name) ?? "null") ?? undefined;
  }

  write(name: string, value: unknown): void {
    this.#texts.set(name, JSON.stringify(value));
  }

  /** What is kept beside a thread. */
  removeDocuments(thread: string): void {
    for (const name of this.names(`documents ${thread}`)) this.#texts.delete(name);
  }

  /** Undefined once its time is over. A use lets that begin again. */
  thread(name: string, isUsed = true): ThreadFile | undefined {
    const file = this.read<ThreadFile>(name);
    const { now, interruptedTtlMs, threadTtlMs } = this.limits;
    const ttl = file?.thread.status === "interrupted" ? interruptedTtlMs : threadTtlMs;
    const isOver = file && !runAhead(file.head) && now() - (this.#usedAt.get(name) ?? 0) >= ttl;
    if (isOver) this.removeThread(name, file.head.owner);
    else if (isUsed) this.#usedAt.set(name, now());
    return isOver ? undefined : file;
  }

  /** Of all owners, or of one. */
  threads(owner?: Owner): ThreadFile[] {
    const names = this.names(owner ? `[${JSON.stringify(ownerText(owner))},` : "[");
    return names.flatMap((name) => this.thread(name, false) ?? []);
  }

  writeThread(name: string, file: ThreadFile): void {
    const { active, owner } = file.head;
    this.write(name, file);
    this.#usedAt.set(name, this.limits.now());
    if (!runAhead(file.head)) this.busy.drop(owner.tenant, name);
    else if (!active || !file.isHeld) this.busy.wait(owner.tenant, name);
  }

  removeThread(name: string, { tenant }: Owner): void {
    this.#texts.delete(name);
    this.removeDocuments(name);
    this.busy.drop(tenant, name);
    for (const [key, log] of this.#logs) {
      if (!key.startsWith(name)) continue;
      log.close(eventsExpired(log.last));
      this.#logs.delete(key);
    }
  }

  /** The thread of a run that the caller may write. Throws `lease_lost`. */
  heldBy(lease: Lease): ThreadFile {
    const file = this.thread(nameOf(lease.owner, lease.thread_id));
    const { active } = file?.head ?? {};
    if (file?.isHeld && active?.run === lease.run_id && active.epoch === lease.epoch) return file;
    throw leaseLost(lease);
  }

  /** The log of a run. Its entries go some time after the end. Throws `not_found`. */
  log({ owner, thread_id, run_id }: RunKey): Log {
    const name = nameOf(owner, thread_id);
    const run = this.thread(name)?.runs.find(({ record }) => record.id === run_id);
    if (!run) throw noSuchRun(run_id);
    const log = this.#logs.get(`${name} ${run_id}`) ?? new Log(this.limits.eventsPerRun);
    this.#logs.set(`${name} ${run_id}`, log);
    const endedAt = Date.parse(run.record.ended_at ?? "");
    if (this.limits.now() - endedAt >= this.limits.eventRetentionMs) log.drop();
    return log;
  }
}
