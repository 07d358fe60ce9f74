// Moves the write-ahead log into the file without keeping the event loop: a thread copies the pages over a connection of its own,
// and flushes both files.
//
// SQLite flushes the log before it copies a page, and the file before the log may begin again; until then it appends. So when the
// power fails at any moment, the log has every page that the file lacks. The log begins again if nothing was committed while the
// last of it was copied, for which the thread asks for a moment of quiet. Where that does not come, the event loop copies what the
// thread has left of REST_BYTES, which is little. At MOST_BYTES the event loop waits for the thread first.
//
// One flush stays on the event loop, of one page: the head of a log that begins again.

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
/** Commits between two looks at the log. */
const LOOK_EVERY = 16;
/** The longest that commits are put off for a moment of quiet. */
const QUIET_MS = 250;
/** The longest that anything waits for the thread. */
const WAIT_MS = 10_000;
/** How long a commit waits at most for the thread, which may have the lock for a moment. */
const BUSY_MS = 5_000;
/** Milliseconds between two log lines about a checkpoint that failed. */
const TELL_MS = 10_000;
/** Size of the log after which SQLite copies it within a commit, where the thread has ended. */
const PAGES = 1_000;
/** Numbers that the thread has in common with the event loop. */
const [WORKING, QUIET] = [0, 1];

interface Parts {
  /** The connection of the event loop. */
  readonly file: DatabaseSync;
  /** Where the thread finds the file. */
  readonly url: URL;
  readonly path: string;
  /** The path of the log. */
  readonly log: string;
  readonly logger: Logger;
  /** The disk has refused to keep what was written. */
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
  /** The length of the log at which something is to be done. */
  #bound = ASIDE_BYTES;
  #quietUntil: number | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#tell = atMostEvery(TELL_MS, (reason) =>
      parts.logger.warn({ reason }, "the log of the database could not be copied into it; it is tried again"),
    );
    // A log that begins again is cut to the bound. So it is longer only if it has more in it.
    parts.file.exec(
      `PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${ASIDE_BYTES}; PRAGMA busy_timeout = ${BUSY_MS}`,
    );
  }

  /** True if the thread writes to the disk now. */
  get isWorking(): boolean {
    return this.#isWorking;
  }

  /** True if a commit that can wait should wait: the log is about to begin again. */
  get wantsQuiet(): boolean {
    if (Atomics.load(this.#state, QUIET) === 0) {
      this.#quietUntil = undefined;
      return false;
    }
    const now = performance.now();
    this.#quietUntil ??= now + QUIET_MS;
    return now < this.#quietUntil;
  }

  /** To be called after each commit. */
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
    // A failed copy or restart of the log is tried again when the log has grown as much.
    this.#bound = length + ASIDE_BYTES;
  }

  /** Resolves when the thread has given up the file. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.#worker?.ref();
    void this.#worker?.terminate();
    await Promise.race([this.#exited, sleep(WAIT_MS, undefined, { ref: false })]);
  }

  /** To be called when the connection of the event loop is closed. */
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

  /** SQLite copies the log within commits, on the event loop. */
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
