// A bounded number of lanes, shared by who needs one: first come, first served.
//
// They are opened when they are needed and closed when they are not. Whoever waits is always answered: with a lane,
// with why none can be opened, or with why the signal was aborted.

import { AppError } from "../../core/errors.ts";
import { SandboxLostError } from "./script.ts";
import type { ShellSession } from "./session.ts";

const MAX_WAITERS = 64;
const IDLE_MS = 5 * 60_000;

export interface ShellPoolOptions {
  readonly open: (signal: AbortSignal) => Promise<ShellSession>;
  /** At once. */
  readonly limit: number;
}

/** A lane that is being opened, for those who waited when it began. */
interface Opening {
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
  /** Without those that are being opened. */
  readonly #sessions = new Set<ShellSession>();
  /** Used last is used first, so that the others grow old. */
  readonly #idle = new Map<ShellSession, NodeJS.Timeout>();
  readonly #waiters: Waiter[] = [];
  /** The oldest first. */
  readonly #openings = new Set<Opening>();

  constructor(options: ShellPoolOptions) {
    this.#options = options;
  }

  /**
   * An idle lane, for the caller alone until it gives it back. Throws the signal's reason, `unavailable` when too
   * many wait, what opening a lane throws, or the reason of `close`.
   */
  take(signal: AbortSignal): Promise<ShellSession> {
    return this.#take(signal, false);
  }

  /** The same, ahead of all others and, when all lanes are busy, with one lane more. */
  takeFirst(signal: AbortSignal): Promise<ShellSession> {
    return this.#take(signal, true);
  }

  /** Takes a lane back as soon as it is idle. */
  give(session: ShellSession): void {
    if (session.isIdle) this.#giveIdle(session);
    else if (!session.isClosed) void session.free().then(() => this.give(session));
  }

  /** A lane that was taken and does not come back; another one may be opened for it. The caller closes it. */
  forget(session: ShellSession): void {
    if (this.#sessions.delete(session)) this.#grow();
  }

  /** Closes those that are idle. */
  dismissIdle(): void {
    for (const session of [...this.#idle.keys()]) retire(session);
  }

  /** Those who wait fail with `reason`, and so does what runs in the lanes. */
  close(reason: Error): void {
    this.#closing.abort(reason);
    for (const waiter of this.#waiters.splice(0)) waiter.reject(reason);
    for (const session of [...this.#sessions]) session.close(reason);
  }

  async #take(signal: AbortSignal, isUrgent: boolean): Promise<ShellSession> {
    this.#closing.signal.throwIfAborted();
    signal.throwIfAborted();
    const idle = this.#takeIdle();
    if (idle) return idle;
    // Some of them wait for nothing but a lane's opening.
    const mayOpen = Math.max(0, this.#options.limit - this.#sessions.size);
    if (!isUrgent && this.#waiters.length >= MAX_WAITERS + mayOpen)
      throw new AppError("unavailable", `${MAX_WAITERS} operations wait for this sandbox. Try again later.`);
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

  #giveIdle(session: ShellSession): void {
    const waiter = this.#waiters.shift();
    if (waiter) waiter.take(session);
    else if (this.#sessions.size > this.#options.limit) retire(session);
    else this.#idle.set(session, setTimeout(() => retire(session), IDLE_MS).unref());
  }

  /** Opens lanes for those who wait, as many as there may be. */
  #grow(): void {
    const isUrgent = this.#waiters[0]?.isUrgent ?? false;
    const limit = this.#options.limit + (isUrgent ? 1 : 0);
    const isRoom = () => this.#sessions.size + this.#openings.size < limit;
    while (this.#waiters.length > this.#openings.size && isRoom()) void this.#open();
  }

  async #open(): Promise<void> {
    const opening: Opening = { waiters: new Set(this.#waiters) };
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
    if (this.#closing.signal.aborted) retire(session);
    this.#sessions.add(session);
    void session.closed.then(() => {
      clearTimeout(this.#idle.get(session));
      this.#idle.delete(session);
      this.forget(session);
    });
    this.give(session);
  }

  /** For those who waited for it no other lane will come, unless there is one. Who came later gets another try. */
  #fail({ waiters }: Opening, error: unknown): void {
    if (this.#sessions.size > 0) return;
    for (const waiter of waiters) if (this.#remove(waiter)) waiter.reject(error);
    this.#grow();
  }

  /** False when it does not wait any more. */
  #remove(waiter: Waiter): boolean {
    const at = this.#waiters.indexOf(waiter);
    if (at >= 0) this.#waiters.splice(at, 1);
    return at >= 0;
  }
}

const retire = (session: ShellSession) => session.close(new SandboxLostError("it was idle"));
