// Copies of the database files while they are in use, and whether anything uses them.

import { existsSync } from "node:fs";
import { AppError, messageOf } from "../../core/errors.ts";
import { copyOpened, loadSqlite } from "./database.ts";

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

const SQLITE_BUSY = 5;

/** Whether a server has the file. One that is broken is in no use. */
export function isInUse(path: string): boolean {
  if (!existsSync(path)) return false;
  const file = new (loadSqlite().DatabaseSync)(path);
  try {
    file.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT");
    return false;
  } catch (error) {
    return Object(error).errcode === SQLITE_BUSY;
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
