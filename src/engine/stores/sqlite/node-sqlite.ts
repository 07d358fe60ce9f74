// Node's SQLite, and the meaning of its errors.

import { AppError } from "../../../agent/core/errors.ts";

/** Node loads SQLite, with a warning, when the first file is opened. Not all programs need it. */
export const loadSqlite = () => process.getBuiltinModule("node:sqlite");

/** Primary error codes. Higher bits contain details. */
const SQLITE_BUSY = 5;
const SQLITE_NOMEM = 7;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_IOERR_FSYNC = 1034;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const PASSES: ReadonlySet<number> = new Set([
  ...[SQLITE_BUSY, SQLITE_NOMEM, SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN],
]);

export function isSqlite(error: unknown): error is Error & { readonly errcode: number } {
  return error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR" && "errcode" in error;
}

/** Returns true if another connection has the lock. */
export const isBusy = (error: unknown): boolean => isSqlite(error) && (error.errcode & 0xff) === SQLITE_BUSY;

/** Returns true if the disk refused to store data. A repeated flush may succeed without that data. */
export const isLost = (error: unknown): boolean => isSqlite(error) && error.errcode === SQLITE_IOERR_FSYNC;

/** Returns true if the operation may succeed once the disk or the memory has room again. */
export function mayPass(error: unknown): boolean {
  const cause = error instanceof AppError ? error.cause : error;
  return isSqlite(cause) && PASSES.has(cause.errcode & 0xff);
}
