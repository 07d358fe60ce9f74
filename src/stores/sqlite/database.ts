// The one file, and the one connection to it. Opened by one process at a time: the lock is held until the
// connection closes or the process dies, however it dies.

import { chmodSync, mkdirSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError, messageOf } from "../../core/errors.ts";
import { storeClosed } from "../errors.ts";
import { Disk } from "./disk.ts";
import { flush, prepareSchema, VERSION } from "./schema.ts";

/** A prepared statement. Its `?` are given in order. */
export interface Query<Row> {
  get(...values: SQLInputValue[]): Row | undefined;
  all(...values: SQLInputValue[]): Row[];
  /** Row by row, as they are asked for. */
  each(...values: SQLInputValue[]): IterableIterator<Row>;
  /** Returns how many rows were changed. */
  run(...values: SQLInputValue[]): number;
}

/** The tables are STRICT: what a column was declared to hold is what comes back, so `Row` is what `sql` selects. */
export function queryOf<Row>(file: DatabaseSync, sql: string): Query<Row> {
  const statement = file.prepare(sql);
  return {
    get: (...values) => statement.get(...values) as Row | undefined,
    all: (...values) => statement.all(...values) as Row[],
    each: (...values) => statement.iterate(...values) as IterableIterator<Row>,
    run: (...values) => Number(statement.run(...values).changes),
  };
}

/** Keeps `effect` for the moment when everything is committed; never called if it is not. */
export type AfterCommit = (effect: () => void) => void;

export class Database {
  readonly #file: DatabaseSync;
  readonly #begin: Query<unknown>;
  readonly #commit: Query<unknown>;
  readonly #stamp: Query<unknown>;
  /** Flushes the write-ahead log, to which SQLite writes each commit. */
  readonly #disk: Disk;

  /** Throws `unavailable` when the file is in use, cannot be opened, or belongs to another program. */
  constructor(path: string) {
    const { file, disk } = open(path);
    this.#file = file;
    this.#disk = disk;
    this.#begin = this.query("BEGIN");
    this.#commit = this.query("COMMIT");
    this.#stamp = this.query(`PRAGMA user_version = ${VERSION}`);
  }

  query<Row>(sql: string): Query<Row> {
    return queryOf(this.#file, sql);
  }

  assertOpen(): void {
    if (!this.#file.isOpen) throw storeClosed();
  }

  /** Throws what `work` throws; what the database itself throws becomes `unavailable`. */
  read<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw this.#translated(error);
    }
  }

  /**
   * Commits all that `work` changes, or nothing if it throws. What is committed survives the process; it survives the machine when
   * `flushed` has resolved. `work` cannot be nested and must not wait.
   */
  write<T>(work: (afterCommit: AfterCommit) => T): T {
    const effects: (() => void)[] = [];
    const result = this.read(() => this.#transaction(() => work((effect) => effects.push(effect))));
    for (const effect of effects) effect();
    return result;
  }

  /**
   * Resolves when everything that is committed now is on disk. Throws `unavailable` when the disk refuses it, and closes the file:
   * what was committed may be lost, so nothing may be built upon it.
   */
  async flushed(): Promise<void> {
    try {
      await this.#disk.flushed();
    } catch (error) {
      if (error instanceof AppError) throw error;
      this.close();
      throw new AppError("unavailable", `The database cannot be written to its disk: ${messageOf(error)}.`, {
        cause: error,
      });
    }
  }

  /** Copies the file as it is at the end of the copying; others get their turn meanwhile. Throws `unavailable`. */
  async copyTo(path: string): Promise<void> {
    try {
      await copyOpened(this.#file, path);
    } catch (error) {
      throw this.#translated(error);
    }
  }

  /** Writes the file's version once more: a full disk, or one that only reads, refuses it. Throws `unavailable`. */
  proveWrite(): void {
    this.write(() => this.#stamp.run());
  }

  close(): void {
    if (!this.#file.isOpen) return;
    this.#disk.close();
    this.#file.close();
  }

  #transaction<T>(work: () => T): T {
    this.#begin.run();
    try {
      const result = work();
      this.#commit.run();
      return result;
    } catch (error) {
      // Some failures have ended the transaction already.
      if (this.#file.isTransaction) this.#file.exec("ROLLBACK");
      throw error;
    }
  }

  #translated(error: unknown): unknown {
    if (!this.#file.isOpen) return storeClosed();
    if (!isSqlite(error)) return error;
    return new AppError("unavailable", `The database failed: ${error.message}.`, { cause: error });
  }
}

function open(path: string): { readonly file: DatabaseSync; readonly disk: Disk } {
  let file: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    file = new (loadSqlite().DatabaseSync)(path, { enableForeignKeyConstraints: true });
    file.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; COMMIT");
    chmodSync(path, 0o600); // also what the journals beside it are created with
    prepareSchema(file, path);
    file.exec("PRAGMA synchronous = NORMAL");
    // The name of a new log has to be on disk as well.
    flush(dirname(path), "r");
    return { file, disk: new Disk(`${realpathSync(path)}-wal`) };
  } catch (error) {
    if (file?.isOpen) file.close();
    throw cannotOpen(path, error);
  }
}

/** Primary codes; the bits above say more. */
const SQLITE_BUSY = 5;
const SQLITE_NOMEM = 7;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const PASSES: ReadonlySet<number> = new Set([
  ...[SQLITE_BUSY, SQLITE_NOMEM, SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN],
]);

/** Whether the same may succeed once the disk or the memory has room again. */
export function mayPass(error: unknown): boolean {
  const cause = error instanceof AppError ? error.cause : error;
  return isSqlite(cause) && PASSES.has(cause.errcode & 0xff);
}

/** Attempts to begin a copy, and the pause between two, in ms. */
const COPY_ATTEMPTS = 400;
const COPY_PAUSE_MS = 5;

/**
 * Copies a file over a connection that has it open. A thread of its own does so, and SQLite begins no copy while the connection
 * is within a transaction: Node then reports the code 0 (`not an error`). Each transaction ends soon, so the copy is tried again.
 */
export async function copyOpened(file: DatabaseSync, path: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await loadSqlite().backup(file, path);
      return;
    } catch (error) {
      const isBusy = isSqlite(error) && (error.errcode === 0 || error.errcode === SQLITE_BUSY);
      if (!isBusy) throw error;
      if (attempt === COPY_ATTEMPTS)
        throw new AppError("unavailable", "The database is being written to without a pause; copy it later.");
      await sleep(COPY_PAUSE_MS);
    }
  }
}

function cannotOpen(path: string, error: unknown): unknown {
  if (error instanceof AppError) return error;
  const message =
    isSqlite(error) && (error.errcode & 0xff) === SQLITE_BUSY
      ? `\`${path}\` is in use by another process. Only one at a time can use it: stop the other, or use another file.`
      : `The database \`${path}\` cannot be opened: ${error instanceof Error ? error.message : String(error)}.`;
  return new AppError("unavailable", message, { cause: error });
}

function isSqlite(error: unknown): error is Error & { errcode: number } {
  return error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR" && "errcode" in error;
}

/** Node loads SQLite, and warns of it, with the first file that is opened: programs may do without. */
export const loadSqlite = () => process.getBuiltinModule("node:sqlite");
