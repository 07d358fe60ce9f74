// Loads the PostgreSQL stores on first use, for programs that may not need them.

import type { Documents } from "../../../agent/core/documents.ts";
import type { AllStores } from "../all-stores.ts";
import type { Inspection } from "../check/facts.ts";
import type { PostgresStoreOptions } from "./index.ts";

/** Loads `index.ts` and calls its function of the same name. */
export async function createPostgresStores(options: PostgresStoreOptions): Promise<AllStores> {
  const postgres = await import("./index.ts");
  return postgres.createPostgresStores(options);
}

/** Loads `index.ts` and calls its function of the same name. */
export async function openPostgresKeys(url: string): Promise<{ documents: Documents; close(): void }> {
  const postgres = await import("./index.ts");
  return postgres.openPostgresKeys(url);
}

/** Loads `inspection.ts` and calls its function of the same name. */
export async function inspectPostgres(url: string, options: { eventsMs: number }): Promise<Inspection> {
  const postgres = await import("./inspection.ts");
  return postgres.inspectPostgres(url, options);
}
