// All ports that a store implements, for runs and for other rooms.

import type { Documents } from "../../agent/core/documents.ts";
import type { Owners } from "../../agent/core/owners.ts";
import type { Stores } from "../../agent/core/stores.ts";
import type { QuotaStore } from "../quotas/store.ts";

/** All parts are opened and closed together. */
export interface AllStores extends Stores {
  readonly documents: Documents;
  readonly owners: Owners;
  readonly quotas: QuotaStore;
  /** Copies the database while it is in use. Present only if the store is a separate file. */
  readonly copyTo?: (path: string) => Promise<void>;
  /** Warnings for operators about the database or server behind the stores, found when the stores were opened. */
  readonly warnings?: readonly string[];
}
