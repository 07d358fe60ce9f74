// Moves the write-ahead log into the database file without blocking the event loop: a thread copies the pages over its
// own connection and flushes both files.
//
// SQLite flushes the log before it copies a page, and flushes the file before it restarts the log. Until then, it
// appends to the log. If the power fails at any moment, the log therefore contains every page that the file lacks.
// SQLite restarts the log if nothing was committed while its last part was copied, so the thread asks for a moment of
// quiet. If it gets none, the event loop copies the remaining pages (about REST_BYTES). At MOST_BYTES, the event loop
// first waits for the thread.
//
// Only one flush remains on the event loop: that of the header of a restarted log.

import { closeSync, openSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { atMostEvery } from "../../../lib/at-most-every.ts";
import type { Logger } from "../../../lib/logger.ts";
import { type CheckpointData, type CheckpointOutcome, copyLog } from "./checkpoint-thread.ts";
import { isLost } from "./node-sqlite.ts";

const MIB = 1024 * 1024;
const ASIDE_BYTES = 8 * MIB;
const REST_BYTES = 32 * MIB;
const MOST_BYTES = 64 * MIB;
/** The number of commits between two checks of the log. */
const LOOK_EVERY = 16;
/** The maximum number of milliseconds for which commits are delayed to get a moment of quiet. */
const QUIET_MS = 250;
/** The maximum number of milliseconds to wait for the thread. */
const WAIT_MS = 10_000;
/** The maximum number of milliseconds that a commit waits for the thread, which may hold the lock briefly. */
const BUSY_MS = 5_000;
/** The number of milliseconds between two log lines about a checkpoint that failed. */
const TELL_MS = 10_000;
/** The number of pages in the log at which SQLite copies it within a commit, if the thread has ended. */
const PAGES = 1_000;
/** The indexes of the flags that the thread shares with the event loop. */
const [WORKING, QUIET] = [0, 1];

interface Parts {
  /** The connection of the event loop. */
  readonly file: DatabaseSync;
  /** The URL under which the thread opens the file. */
  readonly url: URL;
  readonly path: string;
  /** The path of the log. */
  readonly log: string;
  readonly logger: Logger;
  /** Called if the disk refused to store data. */
  readonly onLost: (error: unknown) => void;
}

export class Checkpoints {
  readonly #parts: Parts;
  readonly #state = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  readonly #tell: (reason: string) => void;
  #worker: Worker | undefined;
  #exited: Promise<void> | undefined;
  #descriptor: number | undefined;
  #isWorking = false;
  #isOver = false;
  #commits = 0;
  /** The length of the log in bytes at which the next action is due. */
  #bound = ASIDE_BYTES;
  #quietUntil: number | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#tell = atMostEvery(TELL_MS, (reason) =>
      parts.logger.warn({ reason }, "could not copy the database's log into the database; will retry"),
    );
    // SQLite truncates a restarted log to this limit. If the log is longer, all of its length is therefore content.
    parts.file.exec(
      `PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${ASIDE_BYTES}; PRAGMA busy_timeout = ${BUSY_MS}`,
    );
  }

  /** True while the thread writes to the disk. */
  get isWorking(): boolean {
    return this.#isWorking;
  }

  /** True if commits that can wait should wait, because the log is about to restart. */
  get wantsQuiet(): boolean {
    if (Atomics.load(this.#state, QUIET) === 0) {
      this.#quietUntil = undefined;
      return false;
    }
    const now = performance.now();
    this.#quietUntil ??= now + QUIET_MS;
    return now < this.#quietUntil;
  }

  /** Call this after each commit. */
  look(): void {
    if (this.#isOver || ++this.#commits < LOOK_EVERY) return;
    this.#commits = 0;
    const length = this.#length();
    if (length <= ASIDE_BYTES) this.#bound = ASIDE_BYTES;
    if (length <= this.#bound) return;
    if (!this.#isWorking) this.#begin();
    else if (length > MOST_BYTES) {
      Atomics.wait(this.#state, WORKING, 1, WAIT_MS);
      this.#copyRest();
    } else return;
    // If a copy or restart of the log failed, it is retried after the log has grown by the same amount.
    this.#bound = length + ASIDE_BYTES;
  }

  /** Resolves when the thread has closed the file. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.#worker?.ref();
    void this.#worker?.terminate();
    await Promise.race([this.#exited, sleep(WAIT_MS, undefined, { ref: false })]);
  }

  /** Call this when the connection of the event loop is closed. */
  closed(): void {
    if (this.#worker || this.#descriptor === undefined) return;
    closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #length(): number {
    return statSync(this.#parts.log, { throwIfNoEntry: false })?.size ?? 0;
  }

  #begin(): void {
    try {
      this.#worker ??= this.#start();
    } catch (error) {
      this.#goOnAlone(error);
      return;
    }
    this.#isWorking = true;
    Atomics.store(this.#state, WORKING, 1);
    this.#worker.postMessage(undefined);
  }

  #start(): Worker {
    const { url, path } = this.#parts;
    this.#descriptor ??= openSync(path, "r+");
    const workerData: CheckpointData = { href: url.href, descriptor: this.#descriptor, state: this.#state };
    const worker = new Worker(`(${copyLog})()`, {
      eval: true,
      workerData,
      env: {},
      execArgv: ["--disable-warning=ExperimentalWarning"],
      name: "checkpoints",
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#exited = promise;
    let reason: unknown;
    worker.unref();
    worker.on("message", (outcome: CheckpointOutcome) => this.#ended(outcome));
    worker.on("error", (error) => {
      reason = error;
    });
    worker.on("exit", () => {
      this.#worker = undefined;
      this.#state.fill(0);
      resolve();
      if (!this.#isOver) this.#goOnAlone(reason);
      if (!this.#parts.file.isOpen) this.closed();
    });
    return worker;
  }

  #ended({ error, isLost: hasLost }: CheckpointOutcome): void {
    this.#isWorking = false;
    if (this.#isOver) return;
    if (hasLost) {
      this.#parts.onLost(new Error(error));
      return;
    }
    if (error !== undefined) this.#tell(error);
    if (this.#length() > REST_BYTES) this.#copyRest();
  }

  #copyRest(): void {
    try {
      this.#parts.file.exec("PRAGMA wal_checkpoint(PASSIVE)");
    } catch (error) {
      if (isLost(error)) this.#parts.onLost(error);
      else this.#tell(String(error));
    }
  }

  /** From now on, SQLite copies the log within commits, on the event loop. */
  #goOnAlone(err: unknown): void {
    this.#isOver = true;
    this.#isWorking = false;
    this.#parts.file.exec(`PRAGMA wal_autocheckpoint = ${PAGES}`);
    this.#parts.logger.warn(
      { err },
      "the thread that copies the log of the database has ended; the event loop copies it from now on",
    );
  }
}
