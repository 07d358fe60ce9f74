// The tables of format 1, and the check that a file has them.
//
// `owner` is the JSON of [tenant, user], so no two owners share one. It is the first column of every key that a user can ask
// for, so nothing can be found, joined or deleted across owners. Times are milliseconds since 1970.

import type { DatabaseSync } from "node:sqlite";
import { AppError } from "../../core/errors.ts";
import { join } from "../format.ts";

/** The format of every file: a process reads and writes files of its own format only. */
export const VERSION = 1;

// `title_folded` is what a search of titles compares. `parent` and `forked_from` are JSON; `parent_thread` is the thread that
// `parent` names. A thread whose messages are being copied has a token in `staged` until it is whole. `bytes` are its messages'.
// From position `cut` on, messages are forgotten that are still to be deleted.
//
// `begun` numbers the runs of a thread in the order in which they began. `released` counts the attempts that ended because the
// run was given back.
const TABLES = `
CREATE TABLE threads (
  owner TEXT NOT NULL,
  id TEXT NOT NULL,
  agent TEXT,
  title TEXT,
  title_folded TEXT,
  metadata TEXT NOT NULL,
  status TEXT NOT NULL,
  outcome TEXT NOT NULL,
  message_count INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  parent TEXT,
  parent_thread TEXT,
  staged TEXT,
  bytes INTEGER NOT NULL DEFAULT 0,
  forked_from TEXT,
  cut INTEGER,
  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_by_change ON threads (owner, updated_at, id);
CREATE INDEX threads_by_use ON threads (used_at) WHERE status <> 'busy';
CREATE INDEX threads_by_parent ON threads (owner, parent_thread, updated_at, id);
CREATE INDEX threads_staged ON threads (staged) WHERE staged IS NOT NULL;
CREATE INDEX threads_interrupted ON threads (used_at) WHERE outcome = 'interrupted' AND status <> 'busy';
CREATE INDEX threads_cut ON threads (cut) WHERE cut IS NOT NULL;

CREATE TABLE runs (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  id TEXT NOT NULL,
  number INTEGER NOT NULL,
  agent TEXT NOT NULL,
  status TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  stop_reason TEXT,
  error TEXT,
  usage TEXT NOT NULL,
  metadata TEXT NOT NULL,
  idempotency_key TEXT,
  stop TEXT,
  place INTEGER,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  last_seq INTEGER,
  has_events INTEGER NOT NULL DEFAULT 1,
  request TEXT,
  begun INTEGER,
  released INTEGER NOT NULL DEFAULT 0,
  resumes TEXT,
  PRIMARY KEY (owner, thread_id, id),
  FOREIGN KEY (owner, thread_id) REFERENCES threads ON DELETE CASCADE
) STRICT;
CREATE UNIQUE INDEX runs_by_number ON runs (owner, thread_id, number);
CREATE UNIQUE INDEX runs_by_key ON runs (owner, thread_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX one_running ON runs (owner, thread_id) WHERE status = 'running';
CREATE UNIQUE INDEX runs_waiting ON runs (owner, thread_id, place) WHERE status = 'pending';
CREATE INDEX runs_ended ON runs (ended_at) WHERE has_events = 1 AND ended_at IS NOT NULL;
CREATE UNIQUE INDEX runs_begun ON runs (owner, thread_id, begun) WHERE begun IS NOT NULL;

CREATE TABLE messages (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  id TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (owner, thread_id, position),
  UNIQUE (owner, thread_id, id),
  FOREIGN KEY (owner, thread_id) REFERENCES threads ON DELETE CASCADE
) STRICT;

CREATE TABLE state (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (owner, thread_id, key),
  FOREIGN KEY (owner, thread_id) REFERENCES threads ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE inbox (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  id TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (owner, thread_id, run_id, number),
  FOREIGN KEY (owner, thread_id, run_id) REFERENCES runs ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- One row holds one entry, or consecutive deltas, one in a line. It is named after its last one.
CREATE TABLE events (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  last_seq INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  event TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (owner, thread_id, run_id, last_seq),
  FOREIGN KEY (owner, thread_id, run_id) REFERENCES runs ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- \`due_at\` is when a call must be checked, if ever.
CREATE TABLE deferred_calls (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  token_hash TEXT NOT NULL,
  state TEXT NOT NULL,
  reply TEXT,
  expires_at INTEGER NOT NULL,
  due_at INTEGER,
  PRIMARY KEY (owner, thread_id, call_id),
  FOREIGN KEY (owner, thread_id) REFERENCES threads ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX deferred_calls_by_token ON deferred_calls (token_hash);
CREATE INDEX deferred_calls_due ON deferred_calls (due_at) WHERE due_at IS NOT NULL;

-- \`collection\` and \`key\` are JSON, so that no two collide. Those of a thread name it. Of an item the body is version, time and value.
CREATE TABLE documents (
  collection TEXT NOT NULL,
  key TEXT NOT NULL,
  version TEXT NOT NULL,
  body TEXT NOT NULL,
  due REAL,
  owner TEXT,
  thread_id TEXT,
  PRIMARY KEY (collection, key),
  FOREIGN KEY (owner, thread_id) REFERENCES threads ON DELETE CASCADE
) STRICT;
CREATE INDEX documents_due ON documents (collection, due) WHERE due IS NOT NULL;
CREATE INDEX documents_of_thread ON documents (owner, thread_id) WHERE thread_id IS NOT NULL;

-- Rows of \`events\` that are not there yet, as JSON. See tail.ts.
CREATE TABLE tail (
  id INTEGER PRIMARY KEY,
  body TEXT NOT NULL
) STRICT;
`;

/** As `checkTables`, for the file of threads. */
export const checkSchema = (file: DatabaseSync, path: string) => checkTables(file, path, TABLES);

/** As `prepareTables`, for the file of threads. */
export const prepareSchema = (file: DatabaseSync, path: string) => prepareTables(file, path, TABLES);

/** Makes `tables` if the file is empty; no other process may do so meanwhile. Throws as `checkTables` does. */
export function prepareTables(file: DatabaseSync, path: string, tables: string): void {
  if (checkTables(file, path, tables)) return;
  file.exec(`SAVEPOINT made; ${tables} PRAGMA user_version = ${VERSION}; RELEASE made`);
}

/**
 * Returns true if the file has `tables`, and false if it is empty. It only reads. Throws `unavailable` for the file of another program
 * or of another format.
 */
export function checkTables(file: DatabaseSync, path: string, tables: string): boolean {
  const version = Number(file.prepare("PRAGMA user_version").get()?.user_version);
  const found = file.prepare("SELECT name FROM sqlite_schema").all();
  if (version === 0 && found.length === 0) return false;
  if (version > 0) {
    const format = { version: VERSION, readableFrom: VERSION };
    join(`\`${path}\``, { version, readableFrom: version }, format);
  }
  const names = found.map(({ name }) => name);
  const ours = [...tables.matchAll(/CREATE TABLE (\w+)/g)].map(([, name]) => name);
  if (version === VERSION && ours.every((name) => names.includes(name))) return true;
  throw new AppError(
    "unavailable",
    `\`${path}\` is the database of another program, or lacks tables of format ${VERSION}. Use another file.`,
  );
}
