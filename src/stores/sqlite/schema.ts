// The tables, the steps that made them, and the check that a file has them.
//
// `owner` is the JSON of [tenant, user], so no two owners share one. It is the first column of every key that a user can ask
// for, so nothing can be found, joined or deleted across owners. Times are milliseconds since 1970.

import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { AppError } from "../../core/errors.ts";
import { join } from "../format.ts";

const VERSION_1 = `
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

// No user asks for these: the id alone is the key. `tenant` is JSON, as in `owner`. What has no `due_at` stays.
const VERSION_2 = `
CREATE TABLE sandboxes (
  id TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  keep TEXT NOT NULL,
  state TEXT NOT NULL,
  used_at INTEGER NOT NULL,
  revision TEXT NOT NULL,
  due_at REAL
) STRICT, WITHOUT ROWID;
CREATE INDEX sandboxes_by_state ON sandboxes (state, used_at);
CREATE INDEX sandboxes_due ON sandboxes (due_at) WHERE due_at IS NOT NULL;
`;

// `begun` numbers the runs of a thread in the order in which they began. Some of the runs that existed before were cancelled
// while they waited: their logs have two entries, fewer than any run that began. `released` counts the attempts that ended
// because the run was given back.
const VERSION_3 = `
ALTER TABLE runs ADD COLUMN begun INTEGER;
ALTER TABLE runs ADD COLUMN released INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET begun = number WHERE status <> 'pending' AND NOT (status = 'cancelled' AND last_seq = 2);
CREATE UNIQUE INDEX runs_begun ON runs (owner, thread_id, begun) WHERE begun IS NOT NULL;
`;

// `tenant` is JSON, as in `owner`. `due_at` is when a call must be checked, if ever.
const VERSION_4 = `
CREATE TABLE http_tools (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

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
`;

// `parent` is JSON, `parent_thread` the thread that it names; a thread that works for none has neither. Items' keys are
// JSON, as `owner` is.
const VERSION_5 = `
ALTER TABLE runs ADD COLUMN resumes TEXT;
ALTER TABLE threads ADD COLUMN parent TEXT;
ALTER TABLE threads ADD COLUMN parent_thread TEXT;
CREATE INDEX threads_by_parent ON threads (owner, parent_thread, updated_at, id);

CREATE TABLE thread_items (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  version INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (owner, thread_id, kind, key),
  FOREIGN KEY (owner, thread_id) REFERENCES threads ON DELETE CASCADE
) STRICT;

CREATE TABLE agent_items (
  owner TEXT NOT NULL,
  agent TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  version INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (owner, agent, kind, key)
) STRICT;
`;

// HTTP tools, sandboxes and items become documents. `collection` and `key` are JSON, so that no
// two collide. Those of a thread name it. Of an item the body is version, time and value.
const VERSION_6 = `
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
INSERT INTO documents (collection, key, version, body)
  SELECT '["tools",' || tenant || ']', json_quote(name), 'v', body FROM http_tools;
INSERT INTO documents (collection, key, version, body, due)
  SELECT '["sandboxes"]', json_quote(id), 'v' || revision, '{"owner":' || owner || ',"name":' || json_quote(name)
    || ',"keep":' || keep || ',"state":' || json_quote(state) || ',"used_at":' || used_at
    || ',"due_at":' || coalesce(CAST(due_at AS INTEGER), 'null') || '}', due_at FROM sandboxes;
INSERT INTO documents (collection, key, version, body)
  SELECT '["sandboxes"]', '"taken"', 'v',
    '[' || coalesce(group_concat('[' || json_quote(id) || ',' || tenant || ']'), '') || ']'
  FROM sandboxes WHERE state IN ('running', 'ending') HAVING count(*) > 0;
INSERT INTO documents (collection, key, version, body, owner, thread_id)
  SELECT json_array(kind, owner, 'thread', thread_id), key, 'v' || version,
    version || ' ' || updated_at || ' ' || value, owner, thread_id FROM thread_items;
INSERT INTO documents (collection, key, version, body)
  SELECT json_array(kind, owner, 'agent', agent), key, 'v' || version,
    version || ' ' || updated_at || ' ' || value FROM agent_items;
DROP TABLE http_tools;
DROP TABLE sandboxes;
DROP TABLE thread_items;
DROP TABLE agent_items;
`;

// A thread whose messages are being copied has a token in `staged` until it is whole.
const VERSION_7 = `
ALTER TABLE threads ADD COLUMN staged TEXT;
CREATE INDEX threads_staged ON threads (staged) WHERE staged IS NOT NULL;
`;

// Of a thread's messages.
const VERSION_8 = `
ALTER TABLE threads ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE threads SET bytes = coalesce(
  (SELECT sum(octet_length(body)) FROM messages WHERE owner = threads.owner AND thread_id = threads.id), 0);
`;

// `forked_from` is JSON.
const VERSION_9 = `
ALTER TABLE threads ADD COLUMN forked_from TEXT;
CREATE INDEX threads_interrupted ON threads (used_at) WHERE outcome = 'interrupted' AND status <> 'busy';
`;

// From which position on messages are forgotten that are still to be deleted.
const VERSION_10 = `
ALTER TABLE threads ADD COLUMN cut INTEGER;
CREATE INDEX threads_cut ON threads (cut) WHERE cut IS NOT NULL;
`;

// The body of a row is JSON: rows of `events` that are not there yet. See tail.ts.
const VERSION_11 = `
CREATE TABLE tail (
  id INTEGER PRIMARY KEY,
  body TEXT NOT NULL
) STRICT;
`;

/** What each version adds to the one before. A step that was ever released is never edited: files were made by it. */
const STEPS = [
  VERSION_1,
  VERSION_2,
  VERSION_3,
  VERSION_4,
  VERSION_5,
  VERSION_6,
  VERSION_7,
  VERSION_8,
  VERSION_9,
  VERSION_10,
  VERSION_11,
];
export const VERSION = STEPS.length;

/**
 * Makes the tables in an empty file, and what is missing in an older version's. Throws `unavailable` for a file
 * that is another program's, or a newer version's, and leaves it as it is.
 */
export function prepareSchema(file: DatabaseSync, path: string): void {
  const version = Number(file.prepare("PRAGMA user_version").get()?.user_version);
  if (version === VERSION) return;
  joinFile(path, version, VERSION);
  if (!isOurs(file, version))
    throw new AppError("unavailable", `\`${path}\` is the database of another program. Use another file.`);
  if (version > 0) backUp(file, path, version);
  file.exec(`BEGIN; ${STEPS.slice(version).join("")} PRAGMA user_version = ${VERSION}; COMMIT`);
}

/**
 * Throws `unavailable` for a file of a newer schema: an older program does not know what to write into it. No process uses a file of an
 * older one meanwhile, so who could read it then does not matter.
 */
export function joinFile(path: string, version: number, own: number): void {
  join(`\`${path}\``, { version, readableFrom: version }, { version: own, readableFrom: 0 });
}

/** Whether all tables of its version are there; when it has none, whether nothing is. */
function isOurs(file: DatabaseSync, version: number): boolean {
  const found = file.prepare("SELECT name FROM sqlite_schema").all();
  if (version === 0) return found.length === 0;
  const names = found.map(({ name }) => name);
  const steps = STEPS.slice(0, version).join("");
  const dropped = [...steps.matchAll(/DROP TABLE (\w+)/g)].map(([, name]) => name);
  const ours = [...steps.matchAll(/CREATE TABLE (\w+)/g)].filter(([, name]) => !dropped.includes(name));
  return ours.every(([, name]) => names.includes(name));
}

/**
 * Copies a file of an older version to `<path>.v<version>`, once. The copy has its name only when all of it is on disk;
 * what a killed process has left is copied again. No other process may copy the same file meanwhile.
 */
export function backUp(file: DatabaseSync, path: string, version: number): void {
  const copy = `${path}.v${version}`;
  if (path === ":memory:" || existsSync(copy)) return;
  const part = `${copy}.part`;
  rmSync(part, { force: true });
  closeSync(openSync(part, "wx", 0o600)); // SQLite accepts an empty file and keeps its mode
  file.prepare("VACUUM INTO ?").run(part);
  flush(part, "r+");
  renameSync(part, copy);
  flush(dirname(path), "r");
}

/** Returns once a file, or the names in a folder, are on disk. */
export function flush(path: string, flags: "r" | "r+"): void {
  const opened = openSync(path, flags);
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}
