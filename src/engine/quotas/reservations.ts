// The reservations of the model calls that this process makes: extends them while the calls last. Those of a process that has
// died lapse, and keep no budget from the runs that are taken over.

import type { Logger } from "../../lib/logger.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { QuotaStore } from "./store.ts";

/** How long a reservation counts that is not extended, in ms. Shorter than a call waits for what others have reserved. */
export const RESERVED_MS = 45_000;

/** As many as there are calls in progress. */
export class KeptReservations {
  readonly #store: Pick<QuotaStore, "extend">;
  readonly #logger: Logger;
  readonly #owners = new Map<string, Owner>();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Pick<QuotaStore, "extend">, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  add(owner: Owner, id: string): void {
    this.#owners.set(id, owner);
    this.#timer ??= setInterval(() => this.#extend(), RESERVED_MS / 3).unref();
  }

  remove(id: string): void {
    this.#owners.delete(id);
    if (this.#owners.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #extend(): void {
    for (const [tenant, all] of Map.groupBy(this.#owners, ([, owner]) => owner.tenant)) {
      const ids = all.map(([id]) => id);
      // Tried again soon. What has lapsed meanwhile still counts once it is settled.
      this.#store
        .extend(tenant, ids, RESERVED_MS)
        .catch((err: unknown) => this.#logger.warn({ err, tenant }, "reservations could not be extended"));
    }
  }
}
