// Flushes a file to its disk in the thread pool. Callers that ask during a flush share the next one. The effect is that
// of SQLite's `synchronous=FULL` at each commit, but it does not block the event loop or write the file's times.

import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";
import { storeClosed } from "../errors.ts";

/**
 * In milliseconds. If the previous flush took less time than this, a flush on the event loop is cheaper than one in the
 * thread pool. The disk must also have been idle for this long.
 */
const SHORT_MS = 0.5;

export class Disk {
  readonly #file: number;
  #isOpen = true;
  /** True during a flush, which may have begun before the writes of a new request. */
  #isBusy = false;
  /** Requests that arrive in the meantime share the next flush. */
  #next: PromiseWithResolvers<void> | undefined;
  #lastMs = Number.POSITIVE_INFINITY;
  #lastEnd = 0;
  /** After a failure, a disk may report success even though it has lost data. */
  #failure: unknown;

  readonly #isShared: () => boolean;

  /**
   * `isShared` returns true if something else is writing to the disk, so a flush may take longer than the last one.
   * Throws if the file does not exist.
   */
  constructor(path: string, isShared: () => boolean) {
    this.#file = openSync(path, "r+");
    this.#isShared = isShared;
  }

  /**
   * Resolves when everything written so far is on disk. After a failure, always throws the system's error. Throws
   * `unavailable` once closed.
   */
  flushed(): Promise<void> {
    if (!this.#next) {
      this.#next = Promise.withResolvers();
      // All writes in this tick share the flush.
      if (!this.#isBusy) process.nextTick(() => this.#flush());
    }
    return this.#next.promise;
  }

  /** Waiting callers get `unavailable`. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    // The system may reuse the number of a closed file.
    if (!this.#isBusy) closeSync(this.#file);
  }

  #flush(): void {
    const asked = this.#next;
    if (!asked) return;
    this.#next = undefined;
    if (this.#failure) asked.reject(this.#failure);
    else if (!this.#isOpen) asked.reject(storeClosed());
    else if (this.#isQuick) this.#flushAtOnce(asked);
    else this.#flushAside(asked);
  }

  get #isQuick(): boolean {
    return this.#lastMs < SHORT_MS && performance.now() - this.#lastEnd > SHORT_MS && !this.#isShared();
  }

  #flushAtOnce(asked: PromiseWithResolvers<void>): void {
    const begun = performance.now();
    try {
      fdatasyncSync(this.#file);
      asked.resolve();
    } catch (error) {
      this.#failure = error;
      asked.reject(error);
    }
    this.#ended(begun);
  }

  #flushAside(asked: PromiseWithResolvers<void>): void {
    const begun = performance.now();
    this.#isBusy = true;
    fdatasync(this.#file, (error) => {
      this.#isBusy = false;
      this.#ended(begun);
      if (!this.#isOpen) closeSync(this.#file);
      this.#failure = error ?? undefined;
      if (error) asked.reject(error);
      else asked.resolve();
      this.#flush();
    });
  }

  #ended(begun: number): void {
    this.#lastEnd = performance.now();
    this.#lastMs = this.#lastEnd - begun;
  }
}
