// Loads the PostgreSQL stores on first use, for programs that may not need them.

import type { Documents } from "../../../agent/core/documents.ts";
import type { AllStores } from "../all-stores.ts";
import type { Inspection } from "../check/facts.ts";
import type { PostgresStoreOptions } from "./index.ts";

/** Like the function in `index.ts`. */
export async function createPostgresStores(options: PostgresStoreOptions): Promise<AllStores> {
  const postgres = await import("./index.ts");
  return postgres.createPostgresStores(options);
}

/** Like the function in `index.ts`. */
export async function openPostgresKeys(url: string): Promise<{ documents: Documents; close(): void }> {
  const postgres = await import("./index.ts");
  return postgres.openPostgresKeys(url);
}

/** Like the function in `inspection.ts`. */
export async function inspectPostgres(url: string, options: { eventsMs: number }): Promise<Inspection> {
  const postgres = await import("./inspection.ts");
  return postgres.inspectPostgres(url, options);
}
