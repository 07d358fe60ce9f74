// What a store of this server offers: what runs need, and what other rooms keep beside it.

import type { SandboxLedger } from "../backends/ledger.ts";
import type { Stores } from "../core/stores.ts";
import type { QuotaStore } from "../quotas/store.ts";
import type { HttpToolStore } from "../tools/http/registration.ts";

/** Opened and closed together. */
export interface AllStores extends Stores {
  readonly sandboxes: SandboxLedger;
  readonly httpTools: HttpToolStore;
  readonly quotas: QuotaStore;
}
