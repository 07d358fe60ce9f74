-- A database of schema 5, as version 0.1.0 wrote it: its tables, and rows in each that other rooms keep there.
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
  used_at INTEGER NOT NULL, parent TEXT, parent_thread TEXT,
  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
INSERT INTO threads VALUES('["acme","ada"]','t',NULL,NULL,NULL,'{}','idle','idle',0,1795255200000,1795255200000,1795255200000,NULL,NULL);
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
  request TEXT, begun INTEGER, released INTEGER NOT NULL DEFAULT 0, resumes TEXT,
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
INSERT INTO sandboxes VALUES('sb_ending','["acme","ada"]','"acme"','work','{"running":900000,"container":3600000,"files":null}','ending',1795255202000,'lGBZVga34f7Sc9LiW2cNC4',1795255262000);
INSERT INTO sandboxes VALUES('sb_other','["other","bob"]','"other"','work','{"running":900000,"container":3600000,"files":null}','running',1795255202000,'u6iHzJHyfluPhhADPx28yM',1795256102000);
INSERT INTO sandboxes VALUES('sb_removed','["acme","ada"]','"acme"','work','{"running":900000,"container":3600000,"files":null}','removed',1795255202000,'5ZKg8LGBLhIcTxtNWQFadC',NULL);
INSERT INTO sandboxes VALUES('sb_running','["acme","ada"]','"acme"','work','{"running":900000,"container":3600000,"files":null}','running',1795255202000,'fUy0TwPKYOftwU9qcKgwA5',1795256102000);
INSERT INTO sandboxes VALUES('sb_stopped','["acme","ada"]','"acme"','work','{"running":900000,"container":3600000,"files":null}','stopped',1795255202000,'kRj1lR5b0K156AaWHNtpuQ',1795258802000);
CREATE INDEX sandboxes_by_state ON sandboxes (state, used_at);
CREATE INDEX sandboxes_due ON sandboxes (due_at) WHERE due_at IS NOT NULL;
CREATE UNIQUE INDEX runs_begun ON runs (owner, thread_id, begun) WHERE begun IS NOT NULL;
CREATE TABLE http_tools (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;
INSERT INTO http_tools VALUES('"acme"','forecast','{"name":"forecast","description":"The weather, now","parameters":{"type":"object"},"annotations":{},"agents":["*"],"callback_url":"https://t.example/","headers":{"x-key":"a b"},"timeout_ms":1,"idempotent":true,"secret":"whsec_c2VjcmV0","created_at":"2026-11-21T10:00:00.000Z"}');
INSERT INTO http_tools VALUES('"acme"','weather','{"name":"weather","description":"The weather, now","parameters":{"type":"object"},"annotations":{},"agents":["*"],"callback_url":"https://t.example/","headers":{"x-key":"a b"},"timeout_ms":1,"idempotent":true,"secret":"whsec_c2VjcmV0","created_at":"2026-11-21T10:00:00.000Z"}');
INSERT INTO http_tools VALUES('"other"','weather','{"name":"weather","description":"of the other tenant","parameters":{"type":"object"},"annotations":{},"agents":["*"],"callback_url":"https://t.example/","headers":{"x-key":"a b"},"timeout_ms":1,"idempotent":true,"secret":"whsec_c2VjcmV0","created_at":"2026-11-21T10:00:00.000Z"}');
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
INSERT INTO thread_items VALUES('["acme","ada"]','t','notes','"first"','{"text":"one \ud800 two"}',1,1795255200000);
INSERT INTO thread_items VALUES('["acme","ada"]','t','notes','"plan"','["a","b"]',2,1795255201000);
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
INSERT INTO agent_items VALUES('["acme","ada"]','helper','notes','"first"','{"text":"one \ud800 two"}',1,1795255201000);
INSERT INTO agent_items VALUES('["acme","ada"]','helper','notes','"plan"','["a","b"]',2,1795255202000);
INSERT INTO agent_items VALUES('["acme","ada"]','helper','settings','"overrides"','{"model":"x:y"}',1,1795255202000);
PRAGMA user_version = 5;
