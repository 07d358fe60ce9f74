// The tables, and the check that a file has exactly them.
//
// `owner` is the JSON of [tenant, user]: whatever the two contain, no two owners share one. It leads every key,
// so nothing can be found, joined or deleted across owners. Times are milliseconds since 1970.

import type { DatabaseSync } from "node:sqlite";
import { AppError } from "../../core/errors.ts";

/** Grows with every change of the tables. */
const VERSION = 1;

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
  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_by_change ON threads (owner, updated_at, id);
CREATE INDEX threads_by_use ON threads (used_at) WHERE status <> 'busy';

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
  PRIMARY KEY (owner, thread_id, id),
  FOREIGN KEY (owner, thread_id) REFERENCES threads ON DELETE CASCADE
) STRICT;
CREATE UNIQUE INDEX runs_by_number ON runs (owner, thread_id, number);
CREATE UNIQUE INDEX runs_by_key ON runs (owner, thread_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX one_running ON runs (owner, thread_id) WHERE status = 'running';
CREATE UNIQUE INDEX runs_waiting ON runs (owner, thread_id, place) WHERE status = 'pending';
CREATE INDEX runs_ended ON runs (ended_at) WHERE has_events = 1 AND ended_at IS NOT NULL;

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
`;

/** Makes the tables in an empty file. Throws `unavailable` for a file that is another program's, or a newer version's. */
export function prepareSchema(file: DatabaseSync, path: string): void {
  const version = Number(file.prepare("PRAGMA user_version").get()?.user_version);
  if (version === VERSION) return;
  if (version > VERSION)
    throw new AppError(
      "unavailable",
      `\`${path}\` was written by a newer version of this program (schema ${version}; this one knows ${VERSION}). Use the newer version, or another file.`,
    );
  if (file.prepare("SELECT 1 FROM sqlite_schema").get())
    throw new AppError("unavailable", `\`${path}\` is the database of another program. Use another file.`);
  file.exec(`BEGIN; ${TABLES} PRAGMA user_version = ${VERSION}; COMMIT`);
}
