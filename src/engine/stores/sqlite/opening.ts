// Opens the database file exclusively for this process. The lock lasts until the last connection closes or the process
// dies for any reason.

import {
  chmodSync,
  closeSync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { AppError, messageOf } from "../../../agent/core/errors.ts";
import { isBusy, loadSqlite } from "./node-sqlite.ts";
import { checkHeader, checkSchema, prepareSchema } from "./schema.ts";

export interface OpenFile {
  readonly file: DatabaseSync;
  /**
   * The URL under which other threads of this process can open the file. Undefined if no second connection is possible.
   */
  readonly url: URL | undefined;
  /** The path of the write-ahead log. */
  readonly log: string;
  /**
   * Throws `unavailable` if there is no file or a different one at the path, because new data would be lost with the
   * process.
   */
  assertInPlace(): void;
  close(): void;
}

/**
 * All earlier commits are on disk when this returns. Throws `unavailable` if the file is in use, cannot be opened, or
 * has another format.
 */
export function openFile(path: string): OpenFile {
  const opened: { close(): void }[] = [];
  const close = () => {
    for (const each of opened.splice(0)) each.close();
  };
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const url = threadsCanShare(process.platform, process.versions.sqlite) ? urlForThreads(path) : undefined;
    const file = new (loadSqlite().DatabaseSync)(url ?? path, { enableForeignKeyConstraints: true });
    opened.push(file);
    if (url) {
      opened.push(holdInProcess(path));
      checkHeader(path);
    } else file.exec("PRAGMA locking_mode = EXCLUSIVE");
    // Checked before the file is changed.
    checkSchema(file, path);
    file.exec("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; COMMIT");
    chmodSync(path, 0o600); // SQLite creates the journals with the same mode
    prepareSchema(file, path);
    file.exec("PRAGMA synchronous = NORMAL");
    const log = `${realpathSync(path)}-wal`;
    // From now on, commits of a killed process are visible, but they may not be on disk.
    flush(log, fdatasyncSync);
    // Flushes the names of files, for example that of a new log.
    flush(dirname(log), fsyncSync);
    url?.searchParams.set("mode", "rw");
    const begun = identityOf(path);
    const assertInPlace = () => {
      if (identityOf(path) !== begun) throw notInPlace(path);
    };
    return { file, url, log, assertInPlace, close };
  } catch (error) {
    close();
    throw cannotOpen(path, error);
  }
}

/** Flushes a file, or the names in a folder, to the disk. */
function flush(path: string, sync: (descriptor: number) => void): void {
  const opened = openSync(path, "r");
  try {
    sync(opened);
  } finally {
    closeSync(opened);
  }
}

/** Before 3.51.3, SQLite could lose pages if one connection copied the log while another restarted it. */
const SAFE_FOR_THREADS = [3, 51, 3];

/** Returns true if two threads can have the file open at once. */
export function threadsCanShare(platform: string, sqlite = "0"): boolean {
  if (platform === "win32") return false;
  const version = sqlite.split(".").map(Number);
  const differing = SAFE_FOR_THREADS.findIndex((part, n) => part !== version[n]);
  return differing === -1 || (version[differing] ?? 0) > (SAFE_FOR_THREADS[differing] ?? 0);
}

/**
 * With this VFS, the first connection of a process locks the file against all other processes until its last connection
 * closes. The index of the log is in the process's memory, so no file is mapped and locks need no system calls.
 */
function urlForThreads(path: string): URL {
  const url = pathToFileURL(path);
  url.searchParams.set("vfs", "unix-excl");
  return url;
}

/**
 * That lock does not prevent this process from opening the file twice. A database in memory that all threads of this
 * process share prevents this.
 */
function holdInProcess(path: string): DatabaseSync {
  const lock = new (loadSqlite().DatabaseSync)(`file:/skein-${identityOf(path)}?vfs=memdb`);
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

/** Returns the identity of the file at the path, or undefined if there is no file. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}-${found.ino}`;
}

function notInPlace(path: string): AppError {
  return new AppError(
    "unavailable",
    `The database \`${path}\` was removed or replaced while this server had it open. New data is lost. Restart the server.`,
  );
}

function cannotOpen(path: string, error: unknown): unknown {
  if (error instanceof AppError) return error;
  const message = isBusy(error)
    ? `\`${path}\` is in use by another process. Only one at a time can use it: stop the other, or use another file.`
    : `The database \`${path}\` cannot be opened: ${messageOf(error)}.`;
  return new AppError("unavailable", message, { cause: error });
}
