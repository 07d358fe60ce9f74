-- A database of schema 1, as the program of that time wrote it: its tables, and rows in each of them.
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
INSERT INTO threads VALUES ('["acme","ada"]', 'trip', 'helper', 'The trip', 'the trip', '{"colour":"blue"}', 'busy', 'idle', 2, 1795255200000, 1795255200000, 1795255200000);
INSERT INTO threads VALUES ('["acme","bob"]', 'trip', NULL, NULL, NULL, '{}', 'idle', 'idle', 0, 1795255200000, 1795255200000, 1795255200000);
INSERT INTO runs VALUES ('["acme","ada"]', 'trip', 'run_ended', 1, 'helper', 'success', 1, 'end_turn', NULL, '{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0}', '{}', 'k', NULL, NULL, 1795255200000, 1795255200000, 5, 1, NULL);
INSERT INTO runs VALUES ('["acme","ada"]', 'trip', 'run_running', 2, 'helper', 'running', 1, NULL, NULL, '{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0}', '{}', NULL, NULL, NULL, 1795255200000, NULL, NULL, 1, '{"settings":{},"input":[{"id":"msg_lxnMmmFJihWVQivEy6pR5k","created_at":"2026-11-22T02:35:00.776Z","role":"user","content":"hello"}]}');
INSERT INTO runs VALUES ('["acme","ada"]', 'trip', 'run_waiting', 3, 'helper', 'pending', 1, NULL, NULL, '{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0}', '{}', NULL, NULL, 1, 1795255200000, NULL, NULL, 1, '{"settings":{},"input":[{"id":"msg_TLwvdKGDQT8JkNCuiEggAo","created_at":"2026-11-22T02:35:00.777Z","role":"user","content":"hello"}]}');
INSERT INTO messages VALUES ('["acme","ada"]', 'trip', 1, 'msg_Ddavt3sfpS1tZQwqR55JGq', '{"id":"msg_Ddavt3sfpS1tZQwqR55JGq","created_at":"2026-11-22T02:35:00.774Z","role":"user","content":"one"}');
INSERT INTO messages VALUES ('["acme","ada"]', 'trip', 2, 'msg_SZcUYRUDqSXZ9Bm8zqimCV', '{"id":"msg_SZcUYRUDqSXZ9Bm8zqimCV","created_at":"2026-11-22T02:35:00.776Z","role":"user","content":"two"}');
INSERT INTO state VALUES ('["acme","ada"]', 'trip', 'todos', '["a"]');
INSERT INTO inbox VALUES ('["acme","ada"]', 'trip', 'run_running', 1, 'msg_0NplUeMAhoIhTcnF6rNdRH', '{"id":"msg_0NplUeMAhoIhTcnF6rNdRH","created_at":"2026-11-22T02:35:00.777Z","role":"user","content":"left"}');
INSERT INTO events VALUES ('["acme","ada"]', 'trip', 'run_ended', 1, 1, 'on_message', '{"event":"on_message","data":{"message":{"id":"msg_Ddavt3sfpS1tZQwqR55JGq","created_at":"2026-11-22T02:35:00.774Z","role":"user","content":"one"}}}');
INSERT INTO events VALUES ('["acme","ada"]', 'trip', 'run_ended', 2, 1, 'on_state', '{"event":"on_state","data":{"key":"todos","value":["a"]}}');
INSERT INTO events VALUES ('["acme","ada"]', 'trip', 'run_ended', 4, 1, 'on_chat_model_stream', '{"event":"on_chat_model_stream","data":{"delta":"x"}}
{"event":"on_chat_model_stream","data":{"delta":"y"}}');
INSERT INTO events VALUES ('["acme","ada"]', 'trip', 'run_ended', 5, 1, 'done', '{"event":"done","data":{"status":"success","stop_reason":"end_turn","usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0}}}');
INSERT INTO events VALUES ('["acme","ada"]', 'trip', 'run_running', 1, 1, 'on_message', '{"event":"on_message","data":{"message":{"id":"msg_SZcUYRUDqSXZ9Bm8zqimCV","created_at":"2026-11-22T02:35:00.776Z","role":"user","content":"two"}}}');
PRAGMA user_version = 1;
