// Stores in PostgreSQL, for programs that may do without: what they take to load is loaded with the first of them.

import type { Documents } from "../../../agent/core/documents.ts";
import type { AllStores } from "../all-stores.ts";
import type { Inspection } from "../check/facts.ts";
import type { PostgresStoreOptions } from "./index.ts";

/** As that of `index.ts`. */
export async function createPostgresStores(options: PostgresStoreOptions): Promise<AllStores> {
  const postgres = await import("./index.ts");
  return postgres.createPostgresStores(options);
}

/** As that of `index.ts`. */
export async function openPostgresKeys(url: string): Promise<{ documents: Documents; close(): void }> {
  const postgres = await import("./index.ts");
  return postgres.openPostgresKeys(url);
}

/** As that of `inspection.ts`. */
export async function inspectPostgres(url: string, options: { eventsMs: number }): Promise<Inspection> {
  const postgres = await import("./inspection.ts");
  return postgres.inspectPostgres(url, options);
}
