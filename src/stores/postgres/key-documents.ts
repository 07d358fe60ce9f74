// The documents of a PostgreSQL by themselves, for programs that only look after API keys.

import type { Documents } from "../../core/documents.ts";
import { openPool } from "./client.ts";
import { Database } from "./database.ts";
import { postgresDocuments } from "./documents.ts";

const DEADLINE_MS = 3_000;

/** With connections of its own. Throws as `createPostgresStores` does. */
export async function openPostgresKeys(
  url: string,
  now?: () => number,
): Promise<{ documents: Documents; close(): void }> {
  const pool = await openPool({ url, pool: 2, deadlineMs: DEADLINE_MS, silenceMs: 1_000 });
  const database = new Database(pool, { deadlineMs: DEADLINE_MS, patienceMs: DEADLINE_MS, now });
  return { documents: postgresDocuments(database), close: () => void database.close() };
}
