// All ports that a store implements: those of runs, and those of other rooms.

import type { Documents } from "../../agent/core/documents.ts";
import type { Owners } from "../../agent/core/owners.ts";
import type { Stores } from "../../agent/core/stores.ts";
import type { QuotaStore } from "../quotas/store.ts";

/** Opened and closed together. */
export interface AllStores extends Stores {
  readonly documents: Documents;
  readonly owners: Owners;
  readonly quotas: QuotaStore;
  /** Copies the database while it is in use. Only of a store that is a file of its own. */
  readonly copyTo?: (path: string) => Promise<void>;
  /** Warnings for operators about the database or server behind the stores, found when they were opened. */
  readonly warnings?: readonly string[];
}
