// Records the outcomes of deliveries in the background, after the deliveries were answered. Outcomes that arrive
// together are written together.

import type { Logger } from "../../lib/logger.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { TriggerStore } from "./store.ts";
import type { Delivery } from "./trigger.ts";

export interface DeliveryLog {
  /**
   * Adds a delivery and returns at once. Deliveries that have not been written yet are lost if the process is killed.
   */
  add(owner: Owner, id: string, delivery: Delivery): void;
  /** Waits until everything is written. */
  close(): Promise<void>;
}

interface WaitingDeliveries {
  readonly owner: Owner;
  readonly id: string;
  readonly deliveries: Delivery[];
}

/**
 * The maximum number of deliveries of a trigger that wait during a write. A trigger never shows more deliveries than
 * this.
 */
const MAX_WAITING = 100;

export function createDeliveryLog(
  store: Pick<TriggerStore, "log">,
  logger: Pick<Logger, "warn">,
): DeliveryLog {
  const waiting = new Map<string, WaitingDeliveries>();
  const writing = new Map<string, Promise<void>>();

  const write = async (key: string) => {
    for (let next = waiting.get(key); next; next = waiting.get(key)) {
      waiting.delete(key);
      const { owner, id, deliveries } = next;
      try {
        await store.log(owner, id, deliveries);
      } catch (err) {
        logger.warn(
          { err, tenant: owner.tenant, trigger: id },
          "could not record the deliveries of a trigger",
        );
      }
    }
    writing.delete(key);
  };

  return {
    add(owner, id, delivery) {
      const key = JSON.stringify([owner.tenant, owner.user, id]);
      const { deliveries } = waiting.get(key) ?? { deliveries: [] as Delivery[] };
      deliveries.push(delivery);
      if (deliveries.length > MAX_WAITING) deliveries.shift();
      waiting.set(key, { owner, id, deliveries });
      if (!writing.has(key)) writing.set(key, write(key));
    },
    async close() {
      await Promise.all(writing.values());
    },
  };
}
