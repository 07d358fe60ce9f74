// The database file. Decides how reads and writes are made and when writes are on disk.

import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { AppError, messageOf } from "../../../agent/core/errors.ts";
import { type Logger, SILENT } from "../../../lib/logger.ts";
import { storeClosed } from "../errors.ts";
import { Checkpoints } from "./checkpoints.ts";
import { copyOpened } from "./copies.ts";
import { Disk } from "./disk.ts";
import { isSqlite } from "./node-sqlite.ts";
import { type OpenFile, openFile } from "./opening.ts";
import { VERSION } from "./schema.ts";

/** A prepared statement. Its `?` parameters are bound in the order in which they appear. */
export interface Query<Row> {
  get(...values: SQLInputValue[]): Row | undefined;
  all(...values: SQLInputValue[]): Row[];
  /** Returns rows one by one, as the caller requests them. */
  each(...values: SQLInputValue[]): IterableIterator<Row>;
  /** Returns the number of changed rows. */
  run(...values: SQLInputValue[]): number;
}

/** The tables are STRICT, so columns return values of their declared types and `Row` matches what `sql` selects. */
export function queryOf<Row>(file: DatabaseSync, sql: string): Query<Row> {
  const statement = file.prepare(sql);
  return {
    get: (...values) => statement.get(...values) as Row | undefined,
    all: (...values) => statement.all(...values) as Row[],
    each: (...values) => statement.iterate(...values) as IterableIterator<Row>,
    run: (...values) => Number(statement.run(...values).changes),
  };
}

/** Runs `effect` after everything is committed. Never called otherwise. */
export type AfterCommit = (effect: () => void) => void;

export class Database {
  readonly #opened: OpenFile;
  readonly #file: DatabaseSync;
  readonly #begin: Query<unknown>;
  readonly #commit: Query<unknown>;
  readonly #stamp: Query<unknown>;
  /** Flushes the write-ahead log, to which SQLite writes each commit. */
  readonly #disk: Disk;
  /** Moves the log into the file. Undefined if SQLite does so within a commit. */
  readonly #checkpoints: Checkpoints | undefined;
  /** The reason why the file was closed. */
  #failure: AppError | undefined;

  /** Throws `unavailable` if the file is in use, cannot be opened, or belongs to another program. */
  constructor(path: string, logger: Logger = SILENT) {
    this.#opened = openFile(path);
    const { file, url, log } = this.#opened;
    this.#file = file;
    this.#checkpoints =
      url && new Checkpoints({ file, url, path, log, logger, onLost: (error) => this.#fail(error) });
    this.#disk = new Disk(log, () => this.#checkpoints?.isWorking === true);
    // The thread that moves the log may hold the lock briefly.
    this.#begin = this.query("BEGIN IMMEDIATE");
    this.#commit = this.query("COMMIT");
    this.#stamp = this.query(`PRAGMA user_version = ${VERSION}`);
  }

  query<Row>(sql: string): Query<Row> {
    return queryOf(this.#file, sql);
  }

  assertOpen(): void {
    if (!this.#file.isOpen) throw this.#closed();
  }

  /** Throws the errors of `work`. Errors of the database become `unavailable`. */
  read<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw this.#translated(error);
    }
  }

  /**
   * Commits everything that `work` changes, or nothing if it throws. Commits survive a crash of the process at once,
   * and a crash of the machine after `flushed` has resolved. `work` must not wait, and calls cannot be nested.
   */
  write<T>(work: (afterCommit: AfterCommit) => T): T {
    const effects: (() => void)[] = [];
    const result = this.read(() => this.#transaction(() => work((effect) => effects.push(effect))));
    for (const effect of effects) effect();
    this.#checkpoints?.look();
    return result;
  }

  /**
   * Resolves when everything committed so far is on disk. If the disk refuses to store the data, throws `unavailable`
   * and closes the file, because commits may be lost and nothing can rely on them.
   */
  async flushed(): Promise<void> {
    try {
      await this.#disk.flushed();
    } catch (error) {
      throw error instanceof AppError ? this.#closed() : this.#fail(error);
    }
  }

  /** True if commits that can wait should wait briefly. */
  get wantsQuiet(): boolean {
    return this.#checkpoints?.wantsQuiet === true;
  }

  /** Copies the file as it is at the end of the copy, while other work continues. Throws `unavailable`. */
  async copyTo(path: string): Promise<void> {
    try {
      await copyOpened(this.#file, path);
    } catch (error) {
      throw this.#translated(error);
    }
  }

  /** Rewrites the file's version, which a full or read-only disk refuses. Throws `unavailable`, even if the file was removed. */
  proveWrite(): void {
    this.#opened.assertInPlace();
    this.write(() => this.#stamp.run());
  }

  /** Await this before `close`, so no other thread has the file open. */
  endCheckpoints(): Promise<void> {
    return this.#checkpoints?.end() ?? Promise.resolve();
  }

  close(): void {
    if (!this.#file.isOpen) return;
    void this.#checkpoints?.end();
    this.#disk.close();
    this.#opened.close();
    this.#checkpoints?.closed();
  }

  /** Closes the file, because commits may be lost and nothing can rely on them. */
  #fail(error: unknown): AppError {
    this.#failure ??= new AppError(
      "unavailable",
      `The database could not be written to disk: ${messageOf(error)}. It stays closed until the server restarts.`,
      { cause: error },
    );
    this.close();
    return this.#failure;
  }

  #closed(): AppError {
    return this.#failure ?? storeClosed();
  }

  #transaction<T>(work: () => T): T {
    this.#begin.run();
    try {
      const result = work();
      this.#commit.run();
      return result;
    } catch (error) {
      // Some failures have already ended the transaction.
      if (this.#file.isTransaction) this.#file.exec("ROLLBACK");
      throw error;
    }
  }

  #translated(error: unknown): unknown {
    if (!this.#file.isOpen) return this.#closed();
    if (!isSqlite(error)) return error;
    return new AppError("unavailable", `The database failed: ${error.message}.`, { cause: error });
  }
}
