// The tables of format 1, and the check that a file has them.

import { closeSync, openSync, readSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { AppError } from "../../../agent/core/errors.ts";
import { join } from "../format.ts";
import { documentTable, quotaTables, type Types, threadTables } from "../sql/schema.ts";

/** The format of every file. A process only reads and writes files of its own format. */
export const VERSION = 1;

/**
 * A thread whose messages are being copied has a token in `staged` until it is complete. Messages from position `cut`
 * on are removed but not yet deleted. `released` counts the attempts that ended because the run was returned.
 */
const TYPES: Types = {
  id: "TEXT",
  text: "TEXT",
  whole: "INTEGER",
  real: "REAL",
  flag: (isSet) => `INTEGER NOT NULL DEFAULT ${isSet ? 1 : 0}`,
  rows: " STRICT",
  key: " STRICT, WITHOUT ROWID",
  columns: {
    threads: "status TEXT NOT NULL, staged TEXT, cut INTEGER,",
    runs: "stop TEXT, last_seq INTEGER, released INTEGER NOT NULL DEFAULT 0,",
    calls: "",
  },
};

const TABLES = `${threadTables(TYPES)}
CREATE INDEX threads_by_use ON threads (used_at) WHERE status <> 'busy';
CREATE INDEX threads_staged ON threads (staged) WHERE staged IS NOT NULL;
CREATE INDEX threads_interrupted ON threads (used_at) WHERE outcome = 'interrupted' AND status <> 'busy';
CREATE INDEX threads_cut ON threads (cut) WHERE cut IS NOT NULL;
CREATE UNIQUE INDEX one_running ON runs (owner, thread_id) WHERE status = 'running';
CREATE UNIQUE INDEX runs_waiting ON runs (owner, thread_id, place) WHERE status = 'pending';
CREATE INDEX runs_ended ON runs (ended_at) WHERE has_events = 1 AND ended_at IS NOT NULL;

-- Rows that are not in events yet, as JSON. See tail.ts.
CREATE TABLE tail (
  id INTEGER PRIMARY KEY,
  body TEXT NOT NULL
) STRICT;
`;

/** The tables of `usage.db`. */
export const QUOTA_TABLES = `${quotaTables(TYPES)}
CREATE INDEX stored_by_end ON stored (ends);
`;

/** The tables of `keys.db`. */
export const KEY_TABLES = documentTable(TYPES);

/** Calls `checkTables` for the file that contains the threads. */
export const checkSchema = (file: DatabaseSync, path: string) => checkTables(file, path, TABLES);

/** Calls `prepareTables` for the file that contains the threads. */
export const prepareSchema = (file: DatabaseSync, path: string) => prepareTables(file, path, TABLES);

/**
 * Creates `tables` if the file is empty. No other process may do this at the same time. Throws the same errors as
 * `checkTables`.
 */
export function prepareTables(file: DatabaseSync, path: string, tables: string): void {
  if (checkTables(file, path, tables)) return;
  file.exec(`SAVEPOINT made; ${tables} PRAGMA user_version = ${VERSION}; RELEASE made`);
}

const MAGIC = "SQLite format 3\0";
/** The offset of a file's `user_version`, in bytes. */
const VERSION_AT = 60;

/**
 * Throws the same errors as `checkTables` for a file of another format, before SQLite reads the file and moves its log
 * into it. Does not detect a format that only the log contains. This process must not have the file open, because
 * closing it here would release SQLite's locks.
 */
export function checkHeader(path: string): void {
  const head = beginningOf(path);
  if (head?.toString("latin1", 0, MAGIC.length) !== MAGIC) return;
  const version = head.readUInt32BE(VERSION_AT);
  if (version > 0) joinFile(path, version);
}

/** Returns undefined for a file that is missing or unreadable. SQLite reports the reason. */
function beginningOf(path: string): Buffer | undefined {
  const head = Buffer.alloc(VERSION_AT + 4);
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    readSync(file, head, 0, head.length, 0);
    return head;
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

const joinFile = (path: string, version: number) =>
  join(`\`${path}\``, { version, readableFrom: version }, { version: VERSION, readableFrom: VERSION });

/**
 * Returns true if the file has `tables`, and false if it is empty. Only reads. Throws `unavailable` for the file of
 * another program or of another format.
 */
export function checkTables(file: DatabaseSync, path: string, tables: string): boolean {
  const version = Number(file.prepare("PRAGMA user_version").get()?.user_version);
  const found = file.prepare("SELECT name FROM sqlite_schema").all();
  if (version === 0 && found.length === 0) return false;
  if (version > 0) joinFile(path, version);
  const names = found.map(({ name }) => name);
  const ours = [...tables.matchAll(/CREATE TABLE (\w+)/g)].map(([, name]) => name);
  if (version === VERSION && ours.every((name) => names.includes(name))) return true;
  throw new AppError(
    "unavailable",
    `\`${path}\` belongs to another program, or lacks tables of format ${VERSION}. Use another file.`,
  );
}
