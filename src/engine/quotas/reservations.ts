// Extends the reservations of this process's model calls until the calls end. The reservations of a dead process
// expire, which frees the budget for the runs that other processes take over.

import type { Logger } from "../../lib/logger.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { QuotaStore } from "./store.ts";

/**
 * How long a reservation counts without an extension, in milliseconds. This is shorter than the time for
 * which a call waits for other calls' reservations.
 */
export const RESERVED_MS = 45_000;

/** Contains as many reservations as there are calls in progress. */
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
      // A retry follows soon. A reservation that has expired is still settled at the end.
      this.#store
        .extend(tenant, ids, RESERVED_MS)
        .catch((err: unknown) => this.#logger.warn({ err, tenant }, "reservations could not be extended"));
    }
  }
}
