// API keys in a separate file, `keys.db`, so the command line can create and revoke keys while the server runs.

import { join } from "node:path";
import type { Documents } from "../../../agent/core/documents.ts";
import { sqliteDocuments } from "./documents.ts";
import { KEY_TABLES } from "./schema.ts";
import { openSmallFile } from "./small-file.ts";

export interface OpenDocuments {
  readonly documents: Documents;
  close(): void;
}

/** Creates the file if it is missing. Throws `unavailable` if the file cannot be used; later calls do the same. */
export function openSqliteKeyFile(dataDir: string, now: () => number = Date.now): OpenDocuments {
  const file = openSmallFile({
    path: join(dataDir, "keys.db"),
    content: "The API keys",
    pragmas: "PRAGMA synchronous = FULL",
    tables: KEY_TABLES,
  });
  return { documents: sqliteDocuments(file, now), close: file.close };
}
