// API keys in a file of their own, `keys.db`: keys are made and revoked on the command line while the server runs.

import { join } from "node:path";
import type { Documents } from "../../core/documents.ts";
import { sqliteDocuments } from "./documents.ts";
import { openSmallFile } from "./small-file.ts";

const VERSION_1 = `
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
CREATE INDEX api_keys_by_age ON api_keys (created_at, id);
`;

const iso = (column: string) => `strftime('%Y-%m-%dT%H:%M:%fZ', ${column} / 1000.0, 'unixepoch')`;

/** Keys become documents. A patch of an object drops what is null. */
const VERSION_2 = `
CREATE TABLE documents (
  collection TEXT NOT NULL,
  key TEXT NOT NULL,
  version TEXT NOT NULL,
  body TEXT NOT NULL,
  due REAL,
  owner TEXT,
  thread_id TEXT,
  PRIMARY KEY (collection, key)
) STRICT;
INSERT INTO documents (collection, key, version, body)
  SELECT '["keys"]', json_quote(id), 'v', json_patch('{}', json_object('tenant', json_extract(owner, '$[0]'),
    'user', json_extract(owner, '$[1]'), 'scopes', json(scopes), 'name', name, 'hash', hash,
    'created_at', ${iso("created_at")}, 'expires_at', expires_at, 'revoked_at', ${iso("revoked_at")}))
  FROM api_keys;
DROP TABLE api_keys;
`;

export interface OpenDocuments {
  readonly documents: Documents;
  close(): void;
}

/** Makes the file when there is none. Throws `unavailable` when it cannot be used, as do all later calls. */
export function openSqliteKeyFile(dataDir: string, now: () => number = Date.now): OpenDocuments {
  const file = openSmallFile({
    path: join(dataDir, "keys.db"),
    content: "The API keys",
    pragmas: "PRAGMA synchronous = FULL",
    steps: [VERSION_1, VERSION_2],
  });
  return { documents: sqliteDocuments(file, now), close: file.close };
}
