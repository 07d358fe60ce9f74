// API keys in a file of their own, `keys.db`: keys are made and revoked on the command line while the server runs.

import { join } from "node:path";
import type { Documents } from "../../../agent/core/documents.ts";
import { sqliteDocuments } from "./documents.ts";
import { KEY_TABLES } from "./schema.ts";
import { openSmallFile } from "./small-file.ts";

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
    tables: KEY_TABLES,
  });
  return { documents: sqliteDocuments(file, now), close: file.close };
}
