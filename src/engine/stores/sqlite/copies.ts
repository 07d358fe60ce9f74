// Copies the database files while they are in use, and checks whether a process uses them.

import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError, messageOf } from "../../../agent/core/errors.ts";
import { isBusy, isSqlite, loadSqlite } from "./node-sqlite.ts";

/** The maximum number of attempts to begin a copy, and the milliseconds between two attempts. */
const COPY_ATTEMPTS = 400;
const COPY_PAUSE_MS = 5;

/**
 * Copies a file over a connection that has it open. A separate thread makes the copy. SQLite does not begin a copy
 * while the connection is in a transaction; Node then reports the code 0 (`not an error`). Transactions are short, so
 * the copy is retried.
 */
export async function copyOpened(file: DatabaseSync, path: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await loadSqlite().backup(file, path);
      return;
    } catch (error) {
      if (!isBusy(error) && !(isSqlite(error) && error.errcode === 0)) throw error;
      if (attempt === COPY_ATTEMPTS)
        throw new AppError("unavailable", "The database is being written to continuously. Copy it later.");
      await sleep(COPY_PAUSE_MS);
    }
  }
}

/** The maximum number of milliseconds for which another process can lock a small file. */
const BUSY_MS = 5_000;

/** Copies `usage.db` or `keys.db`, which other processes may use. Returns false if the file does not exist. */
export async function copySmallFile(from: string, to: string): Promise<boolean> {
  if (!existsSync(from)) return false;
  const file = new (loadSqlite().DatabaseSync)(from, { readOnly: true, timeout: BUSY_MS });
  try {
    await copyOpened(file, to);
    return true;
  } finally {
    file.close();
  }
}

/** Returns true if a server has the file open. A broken file is not in use. */
export function isInUse(path: string): boolean {
  if (!existsSync(path)) return false;
  const file = new (loadSqlite().DatabaseSync)(path);
  try {
    file.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT");
    return false;
  } catch (error) {
    return isBusy(error);
  } finally {
    file.close();
  }
}

/** Locks the file until it is closed or the process dies. Throws `unavailable` if another process holds or uses the file. */
export function holdFile(path: string): { close(): void } {
  const file = new (loadSqlite().DatabaseSync)(path);
  try {
    file.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    return { close: () => file.close() };
  } catch (error) {
    file.close();
    throw new AppError("unavailable", `\`${path}\` is in use (${messageOf(error)}).`, { cause: error });
  }
}
