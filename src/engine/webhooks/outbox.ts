// Stores deliveries of events for the webhooks that subscribe to them, and decides when they can be sent.

import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../../agent/core/errors.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Logger } from "../../lib/logger.ts";
import type { EndingRun } from "../runs/services.ts";
import { logDropped } from "./deliverer.ts";
import { type Delivery, deliveryId, laneOf, OPERATOR, payload } from "./delivery.ts";
import { type DeliveryPlace, type DeliveryStore, deliveriesOf, NOTIFICATIONS } from "./delivery-store.ts";
import { eventsOfEnd, statusOfEnd, type ToldEvent } from "./events.ts";
import type { KnownWebhooks } from "./known-webhooks.ts";
import { type Keeper, type Webhook, wants } from "./webhook.ts";

export interface OutboxServices {
  readonly known: KnownWebhooks;
  readonly deliveries: DeliveryStore;
  readonly logger: Logger;
  /**
   * How long a process has to store the end of a run, in milliseconds. After that, other processes check whether the
   * run has ended.
   */
  readonly holdMs: number;
  /** True if the operator has a webhook. */
  readonly hasOperator: boolean;
  /** Called when deliveries have become due. */
  wake(): void;
}

/** A delivery and where it is stored. */
interface PlacedDelivery {
  readonly place: DeliveryPlace;
  readonly delivery: Delivery;
}

/** Facts about a delivery other than its event. `id` identifies the event. */
type About = { readonly id: string } & Partial<Delivery>;

/** The methods never throw. */
export function createOutbox({ known, deliveries, logger, holdMs, hasOperator, wake }: OutboxServices) {
  const keep = async ({ place, delivery }: PlacedDelivery, ms: number): Promise<void> => {
    try {
      await deliveries.keep(place, delivery, ms);
    } catch (error) {
      if (!hasCode(error, "limit_exceeded")) throw error;
      logDropped(logger, delivery, error.message);
    }
  };
  /** Stores the deliveries for the end of a run. */
  const prepare = (ending: EndingRun): Promise<PlacedDelivery[]> =>
    persistently(async () => {
      const { owner, run } = ending;
      const about = { state: "prepared" as const, run_status: statusOfEnd(ending) };
      const told = eventsOfEnd(ending).map((event) =>
        posted(known, owner, event, { id: `${run.id} ${event.type}`, ...about }),
      );
      const all = [...(await Promise.all(told)).flat(), ...(hasOperator ? notifications(ending) : [])];
      await Promise.all(all.map((each) => keep(each, holdMs)));
      return all;
    });
  /** Confirms that the end of the run is stored. */
  const confirm = async (
    ending: EndingRun,
    prepared: readonly PlacedDelivery[] | undefined,
  ): Promise<void> => {
    const all = prepared ?? (await prepare(ending));
    if (all.length === 0) return;
    try {
      for (const { place, delivery } of all) await deliveries.confirm(place, delivery);
      wake();
    } catch {
      // Without a confirmation, the deliveries become due soon.
    }
  };

  return {
    async emit(owner: Keeper, event: ToldEvent, about: About): Promise<void> {
      try {
        const all = await persistently(async () => {
          const found = await posted(known, owner, event, about);
          await Promise.all(found.map((each) => keep(each, 0)));
          return found;
        });
        if (all.length > 0) wake();
      } catch (err) {
        logger.error(
          { err, tenant: owner.tenant, type: event.type },
          "could not store an event for webhooks",
        );
      }
    },

    /** See `RunServices.beforeEnd`. */
    async beforeEnd(ending: EndingRun): Promise<() => void> {
      // If the store has no room for the deliveries, it may still have room for the end of the run. Storing them is
      // retried after the end.
      const prepared = await prepare(ending).catch(() => undefined);
      return () =>
        void confirm(ending, prepared).catch((err: unknown) => {
          const { owner, run } = ending;
          const details = { err, run_id: run.id, tenant: owner.tenant };
          logger.error(details, "could not store the end of a run for webhooks");
        });
    },
  };
}

/** The maximum number of attempts to write while the store fails, and the pause after each, in milliseconds. */
const MAX_ATTEMPTS = 5;
const PAUSE = { base: 100, jitter: 0.5 };

/** Retries `work` while the store is temporarily unavailable. */
async function persistently<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!hasCode(error, "unavailable") || attempt === MAX_ATTEMPTS - 1) throw error;
      await sleep(backoff(attempt, PAUSE));
    }
  }
}

async function posted(
  known: KnownWebhooks,
  owner: Keeper,
  event: ToldEvent,
  { id, ...about }: About,
): Promise<PlacedDelivery[]> {
  return (await known.of(owner))
    .filter(({ webhook }) => wants(webhook, event))
    .map(({ keeper, webhook }) => {
      const own = deliveryId(keeper, webhook.id, id);
      const delivery = deliveryOf(owner, event, webhook, { ...about, id: own });
      return { place: { collection: deliveriesOf(keeper), key: own }, delivery };
    });
}

function deliveryOf(
  { tenant, user }: Keeper,
  { type, thread_id, run_id, agent, data }: ToldEvent,
  { id: webhook, ordered }: Webhook,
  about: About,
): Delivery {
  const at = Date.now();
  const owner = { tenant, ...(user === undefined ? {} : { user }) };
  const ids = { thread_id, run_id, agent };
  const body = payload(type, { ...owner, ...ids, ...data }, at);
  const lane = ordered && thread_id !== undefined ? { lane: laneOf(webhook, thread_id) } : {};
  const told = { webhook, owner, type, ...ids, body, at, ...lane };
  return { ...told, attempts: 0, state: "pending", run_status: "", ...about };
}

/** Returns the operator's notification for a run that waits for answers. It contains the questions. */
function notifications({
  owner,
  run: { id: run_id, thread_id, agent },
  interrupts,
}: EndingRun): PlacedDelivery[] {
  if (interrupts.length === 0) return [];
  const at = Date.now();
  const { tenant, user } = owner;
  const body = payload("run.interrupted", { tenant, user, thread_id, run_id, agent, interrupts }, at);
  const delivery: Delivery = {
    // This id is the same for every attempt to end the run, in any process.
    id: `msg_${run_id}`,
    ...{ webhook: OPERATOR, owner, type: "run.interrupted", run_id, thread_id, agent, body, at },
    ...{ attempts: 0, state: "prepared", run_status: "interrupted" },
  };
  return [{ place: { collection: { kind: NOTIFICATIONS, tenant }, key: run_id }, delivery }];
}
