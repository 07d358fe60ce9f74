-- The API keys (schema 1), as version 0.1.0 wrote it: its tables, and rows in each that other rooms keep there.
CREATE TABLE api_keys (
  id TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  tenant TEXT NOT NULL,
  scopes TEXT NOT NULL,
  name TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at TEXT,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO api_keys VALUES('1111111111111111111111','["acme","ada"]','"acme"','["read","run"]','key 1','hash1',1795255203000,NULL,1795255206000);
INSERT INTO api_keys VALUES('2222222222222222222222','["other","ada"]','"other"','["read","run"]','key 2','hash2',1795255204000,'2031-01-31T00:00:00.000Z',NULL);
INSERT INTO api_keys VALUES('3333333333333333333333','["acme","ada"]','"acme"','["read","run"]','key 3','hash3',1795255205000,NULL,NULL);
CREATE INDEX api_keys_by_age ON api_keys (created_at, id);
PRAGMA user_version = 1;
