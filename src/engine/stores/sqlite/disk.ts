// Brings what was written to a file onto its disk, in the thread pool: one flush for all who ask while another is under way.
// It does what SQLite's `synchronous=FULL` does at each commit, without keeping the event loop, and without the times of the
// file, which cost another write.

import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";
import { storeClosed } from "../errors.ts";

/** A disk that took no longer for its last flush, in ms, is not worth the way through the thread pool, if it has rested as long. */
const SHORT_MS = 0.5;

export class Disk {
  readonly #file: number;
  #isOpen = true;
  /** True if a flush is under way. It may have begun before the writes of a new request. */
  #isBusy = false;
  /** Requests that come meanwhile share the next one. */
  #next: PromiseWithResolvers<void> | undefined;
  #lastMs = Number.POSITIVE_INFINITY;
  #lastEnd = 0;
  /** A disk that has failed once may say later that all is well, though what it refused is lost. */
  #failure: unknown;

  readonly #isShared: () => boolean;

  /** `isShared`: something else writes to the disk just now, so a flush may take longer than the last one. Throws when there is no such file. */
  constructor(path: string, isShared: () => boolean) {
    this.#file = openSync(path, "r+");
    this.#isShared = isShared;
  }

  /**
   * Resolves when everything that was written before is on disk. Throws what the system says, from then on, or `unavailable` once
   * it is closed.
   */
  flushed(): Promise<void> {
    if (!this.#next) {
      this.#next = Promise.withResolvers();
      // Everything written in this step shares it.
      if (!this.#isBusy) process.nextTick(() => this.#flush());
    }
    return this.#next.promise;
  }

  /** Callers that wait get `unavailable`. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    // The system may give the number of a closed file to another one.
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
