// A bounded pool of shell sessions, which serves callers in order of arrival. Sessions are opened on demand and
// closed when they are unused.
//
// Every waiting caller gets a session, the reason why none can be opened, or its signal's reason.

import { AppError } from "../../agent/core/errors.ts";
import { SandboxLostError } from "./script.ts";
import type { ShellSession } from "./session.ts";

const MAX_WAITERS = 64;
const IDLE_MS = 5 * 60_000;

export interface ShellPoolOptions {
  readonly open: (signal: AbortSignal) => Promise<ShellSession>;
  /** The maximum number of sessions. */
  readonly limit: number;
}

/** A session that is being opened, and the callers that were waiting when the opening began. */
interface PendingSession {
  readonly waiters: ReadonlySet<Waiter>;
}

interface Waiter {
  readonly isUrgent: boolean;
  take(session: ShellSession): void;
  reject(reason: unknown): void;
}

export class ShellPool {
  readonly #options: ShellPoolOptions;
  readonly #closing = new AbortController();
  /** All open sessions. */
  readonly #sessions = new Set<ShellSession>();
  /** The idle sessions. The most recently used session is used first, so the others can expire. */
  readonly #idle = new Map<ShellSession, NodeJS.Timeout>();
  readonly #waiters: Waiter[] = [];
  /** The sessions that are being opened, oldest first. */
  readonly #openings = new Set<PendingSession>();

  constructor(options: ShellPoolOptions) {
    this.#options = options;
  }

  /**
   * Returns an idle session for exclusive use until it is released. Throws the signal's reason, `unavailable` if too
   * many callers wait, the error of opening a session, or the reason passed to `close`.
   */
  acquire(signal: AbortSignal): Promise<ShellSession> {
    return this.#acquire(signal, false);
  }

  /** Like `acquire`, but ahead of all other callers. Opens one extra session if all are busy. */
  acquireFirst(signal: AbortSignal): Promise<ShellSession> {
    return this.#acquire(signal, true);
  }

  /** Returns a session to the pool as soon as it is idle. */
  release(session: ShellSession): void {
    if (session.isIdle) this.#releaseIdle(session);
    else if (!session.isClosed) void session.free().then(() => this.release(session));
  }

  /** Removes an acquired session from the pool, which may open another one. The caller closes it. */
  evict(session: ShellSession): void {
    if (this.#sessions.delete(session)) this.#grow();
  }

  closeIdle(): void {
    for (const session of [...this.#idle.keys()]) closeUnused(session);
  }

  /** Closes the pool. Waiting callers and running scripts fail with `reason`. */
  close(reason: Error): void {
    this.#closing.abort(reason);
    for (const waiter of this.#waiters.splice(0)) waiter.reject(reason);
    for (const session of [...this.#sessions]) session.close(reason);
  }

  async #acquire(signal: AbortSignal, isUrgent: boolean): Promise<ShellSession> {
    this.#closing.signal.throwIfAborted();
    signal.throwIfAborted();
    const idle = this.#takeIdle();
    if (idle) return idle;
    // Some callers wait only until their session is open.
    const mayOpen = Math.max(0, this.#options.limit - this.#sessions.size);
    if (!isUrgent && this.#waiters.length >= MAX_WAITERS + mayOpen)
      throw new AppError(
        "unavailable",
        `${MAX_WAITERS} operations are waiting for this sandbox. Try again later.`,
      );
    return this.#wait(signal, isUrgent);
  }

  #takeIdle(): ShellSession | undefined {
    for (const [session, timer] of [...this.#idle].reverse()) {
      clearTimeout(timer);
      this.#idle.delete(session);
      if (!session.isClosed) return session;
    }
    return undefined;
  }

  async #wait(signal: AbortSignal, isUrgent: boolean): Promise<ShellSession> {
    const { promise, resolve, reject } = Promise.withResolvers<ShellSession>();
    const waiter: Waiter = { isUrgent, take: resolve, reject };
    const onAbort = () => {
      this.#remove(waiter);
      reject(signal.reason);
    };
    const place = isUrgent ? this.#waiters.findIndex((other) => !other.isUrgent) : -1;
    this.#waiters.splice(place < 0 ? this.#waiters.length : place, 0, waiter);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#grow();
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #releaseIdle(session: ShellSession): void {
    const waiter = this.#waiters.shift();
    if (waiter) waiter.take(session);
    else if (this.#sessions.size > this.#options.limit) closeUnused(session);
    else this.#idle.set(session, setTimeout(() => closeUnused(session), IDLE_MS).unref());
  }

  /** Opens sessions for waiting callers, up to the limit. */
  #grow(): void {
    const isUrgent = this.#waiters[0]?.isUrgent ?? false;
    const limit = this.#options.limit + (isUrgent ? 1 : 0);
    const isRoom = () => this.#sessions.size + this.#openings.size < limit;
    while (this.#waiters.length > this.#openings.size && isRoom()) void this.#open();
  }

  async #open(): Promise<void> {
    const opening: PendingSession = { waiters: new Set(this.#waiters) };
    this.#openings.add(opening);
    try {
      const session = await this.#options.open(this.#closing.signal);
      this.#openings.delete(opening);
      this.#add(session);
    } catch (error) {
      const [oldest] = this.#openings;
      this.#openings.delete(opening);
      if (opening === oldest) this.#fail(opening, error);
    }
  }

  #add(session: ShellSession): void {
    if (this.#closing.signal.aborted) closeUnused(session);
    this.#sessions.add(session);
    void session.closed.then(() => {
      clearTimeout(this.#idle.get(session));
      this.#idle.delete(session);
      this.evict(session);
    });
    this.release(session);
  }

  /**
   * Fails the callers that waited for this opening, unless another session is open. For later callers, another session
   * is opened.
   */
  #fail({ waiters }: PendingSession, error: unknown): void {
    if (this.#sessions.size > 0) return;
    for (const waiter of waiters) if (this.#remove(waiter)) waiter.reject(error);
    this.#grow();
  }

  /** Removes a waiter. Returns false if it is not in the queue. */
  #remove(waiter: Waiter): boolean {
    const at = this.#waiters.indexOf(waiter);
    if (at >= 0) this.#waiters.splice(at, 1);
    return at >= 0;
  }
}

const closeUnused = (session: ShellSession) => session.close(new SandboxLostError("it was idle"));
