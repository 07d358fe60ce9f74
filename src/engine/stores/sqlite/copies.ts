// Copies of the database files while they are in use, and whether anything uses them.

import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError, messageOf } from "../../../agent/core/errors.ts";
import { isBusy, isSqlite, loadSqlite } from "./node-sqlite.ts";

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
      if (!isBusy(error) && !(isSqlite(error) && error.errcode === 0)) throw error;
      if (attempt === COPY_ATTEMPTS)
        throw new AppError("unavailable", "The database is being written to continuously. Copy it later.");
      await sleep(COPY_PAUSE_MS);
    }
  }
}

/** How long another process may hold a small file, in ms. */
const BUSY_MS = 5_000;

/** Copies a file that other processes may use: `usage.db` and `keys.db`. False when there is none. */
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

/** True if a server has the file. A broken file is not in use. */
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

/** Held until it is closed, or the process dies. Throws `unavailable` when another process has it, or uses the file. */
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
