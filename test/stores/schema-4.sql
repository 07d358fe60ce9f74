-- A database of schema 4, as the program of that time wrote it: its tables, and rows in each of them.
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
INSERT INTO threads VALUES('["acme","ada"]','trip','helper','The trip','the trip','{"colour":"blue"}','busy','idle',2,1795255200000,1795255200000,1795255200000);
INSERT INTO threads VALUES('["acme","bob"]','trip',NULL,NULL,NULL,'{}','idle','idle',0,1795255200000,1795255200000,1795255200000);
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
  request TEXT, begun INTEGER, released INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (owner, thread_id, id),
  FOREIGN KEY (owner, thread_id) REFERENCES threads ON DELETE CASCADE
) STRICT;
INSERT INTO runs VALUES('["acme","ada"]','trip','run_ended',1,'helper','success',1,'end_turn',NULL,'{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0}','{}','k',NULL,NULL,1795255200000,1795255200000,3,1,NULL,1,0);
INSERT INTO runs VALUES('["acme","ada"]','trip','run_running',2,'helper','running',1,NULL,NULL,'{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0}','{}',NULL,NULL,NULL,1795255200000,NULL,NULL,1,'{"settings":{},"input":[{"id":"msg_input_run_running","created_at":"2026-11-21T10:00:00.000Z","role":"user","content":"hello"}]}',2,0);
INSERT INTO runs VALUES('["acme","ada"]','trip','run_waiting',3,'helper','pending',1,NULL,NULL,'{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0}','{}',NULL,NULL,1,1795255200000,NULL,NULL,1,'{"settings":{},"input":[{"id":"msg_input_run_waiting","created_at":"2026-11-21T10:00:00.000Z","role":"user","content":"hello"}]}',NULL,0);
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
INSERT INTO messages VALUES('["acme","ada"]','trip',1,'msg_one','{"id":"msg_one","created_at":"2026-11-21T10:00:00.000Z","role":"user","content":"one"}');
INSERT INTO messages VALUES('["acme","ada"]','trip',2,'msg_two','{"id":"msg_two","created_at":"2026-11-21T10:00:00.000Z","role":"user","content":"two"}');
CREATE TABLE state (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (owner, thread_id, key),
  FOREIGN KEY (owner, thread_id) REFERENCES threads ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO state VALUES('["acme","ada"]','trip','todos','["a"]');
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
INSERT INTO inbox VALUES('["acme","ada"]','trip','run_running',1,'msg_left','{"id":"msg_left","created_at":"2026-11-21T10:00:00.000Z","role":"user","content":"left"}');
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
INSERT INTO events VALUES('["acme","ada"]','trip','run_ended',1,1,'on_message','{"event":"on_message","data":{"message":{"id":"msg_one","created_at":"2026-11-21T10:00:00.000Z","role":"user","content":"one"}}}');
INSERT INTO events VALUES('["acme","ada"]','trip','run_ended',2,1,'on_state','{"event":"on_state","data":{"key":"todos","value":["a"]}}');
INSERT INTO events VALUES('["acme","ada"]','trip','run_ended',3,1,'done','{"event":"done","data":{"status":"success","stop_reason":"end_turn","usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0}}}');
INSERT INTO events VALUES('["acme","ada"]','trip','run_running',1,1,'on_message','{"event":"on_message","data":{"message":{"id":"msg_two","created_at":"2026-11-21T10:00:00.000Z","role":"user","content":"two"}}}');
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
INSERT INTO sandboxes VALUES('sb_1','["acme","ada"]','"acme"','work','{"running":3600000,"container":7200000,"files":null}','running',1795255200000,'mhwCZl1gQ4FgTpfvjtiZ5v',1795258800000.0);
CREATE TABLE http_tools (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;
INSERT INTO http_tools VALUES('"acme"','weather','{"name":"weather","description":"x","parameters":{"type":"object"},"annotations":{},"agents":["*"],"callback_url":"https://t.example/","headers":{},"timeout_ms":1,"idempotent":true,"secret":"whsec_c2VjcmV0","created_at":"2026-11-21T10:00:00.000Z"}');
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
INSERT INTO deferred_calls VALUES('["acme","ada"]','trip','call_1','run_running','weather','3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0','sent',NULL,1795257000000,NULL);
CREATE INDEX threads_by_change ON threads (owner, updated_at, id);
CREATE INDEX threads_by_use ON threads (used_at) WHERE status <> 'busy';
CREATE UNIQUE INDEX runs_by_number ON runs (owner, thread_id, number);
CREATE UNIQUE INDEX runs_by_key ON runs (owner, thread_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX one_running ON runs (owner, thread_id) WHERE status = 'running';
CREATE UNIQUE INDEX runs_waiting ON runs (owner, thread_id, place) WHERE status = 'pending';
CREATE INDEX runs_ended ON runs (ended_at) WHERE has_events = 1 AND ended_at IS NOT NULL;
CREATE INDEX sandboxes_by_state ON sandboxes (state, used_at);
CREATE INDEX sandboxes_due ON sandboxes (due_at) WHERE due_at IS NOT NULL;
CREATE UNIQUE INDEX runs_begun ON runs (owner, thread_id, begun) WHERE begun IS NOT NULL;
CREATE UNIQUE INDEX deferred_calls_by_token ON deferred_calls (token_hash);
CREATE INDEX deferred_calls_due ON deferred_calls (due_at) WHERE due_at IS NOT NULL;
PRAGMA user_version = 4;
