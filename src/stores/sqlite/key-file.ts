// API keys in a file of their own, `keys.db`: keys are made and revoked on the command line while the server runs.

import { join } from "node:path";
import type { Documents } from "../../core/documents.ts";
import { sqliteDocuments } from "./documents.ts";
import { openSmallFile } from "./small-file.ts";

const TABLES = `
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
    tables: TABLES,
  });
  return { documents: sqliteDocuments(file, now), close: file.close };
}
