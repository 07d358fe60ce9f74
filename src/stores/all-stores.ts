// What a store of this server offers: what runs need, and what other rooms keep beside it.

import type { Documents } from "../core/documents.ts";
import type { Stores } from "../core/stores.ts";
import type { QuotaStore } from "../quotas/store.ts";

/** Opened and closed together. */
export interface AllStores extends Stores {
  readonly documents: Documents;
  readonly quotas: QuotaStore;
}
