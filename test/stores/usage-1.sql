-- The usage (schema 1), as version 0.1.0 wrote it: its tables, and rows in each that other rooms keep there.
CREATE TABLE held (
  thing TEXT NOT NULL, user TEXT NOT NULL, id TEXT NOT NULL, tenant TEXT NOT NULL, ends INTEGER NOT NULL,
  PRIMARY KEY (thing, user, id)
) STRICT, WITHOUT ROWID;
INSERT INTO held VALUES('runs','["acme","ada"]','run_1','["acme"]',1795258806000);
INSERT INTO held VALUES('threads','["acme","bob"]','t','["acme"]',101795255206000);
CREATE INDEX held_by_tenant ON held (thing, tenant);
CREATE INDEX held_by_end ON held (ends);
CREATE TABLE reserved (
  id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL,
  tokens INTEGER NOT NULL, cost INTEGER NOT NULL, ends INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO reserved VALUES('open','["acme"]','["acme","ada"]',50,5,1795256106000);
CREATE TABLE spent (
  name TEXT NOT NULL, period TEXT NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
  PRIMARY KEY (name, period)
) STRICT, WITHOUT ROWID;
INSERT INTO spent VALUES('["acme","ada"]','2026-11',120,7);
INSERT INTO spent VALUES('["acme","ada"]','2026-11-21',120,7);
INSERT INTO spent VALUES('["acme"]','2026-11',120,7);
INSERT INTO spent VALUES('["acme"]','2026-11-21',120,7);
CREATE TABLE usage (
  user TEXT NOT NULL, day TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
  PRIMARY KEY (user, day, agent, model)
) STRICT, WITHOUT ROWID;
INSERT INTO usage VALUES('["acme","ada"]','2026-11-21','helper','a:b',1,100,20,3,4,7);
PRAGMA user_version = 1;
