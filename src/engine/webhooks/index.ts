// Tells webhooks of events: those of users and tenants, and the operator's. No run waits for a receiver. A delivery is stored before the
// end of its run is; then any process sends it, at least once, until the receiver takes it or a day is over.

import type { ClaimedDocument } from "../../agent/core/document-claims.ts";
import { type Documents, retain } from "../../agent/core/documents.ts";
import type { Page, RunStore, ThreadStore } from "../../agent/core/stores.ts";
import type { HostList } from "../../lib/hosts.ts";
import type { Logger } from "../../lib/logger.ts";
import { randomId } from "../../lib/random-id.ts";
import { createPublicFetch } from "../../lib/ssrf-safe-fetch/index.ts";
import type { Owner } from "../../protocol/ids.ts";
import { createDueWorker } from "../due-worker.ts";
import type { BudgetState } from "../quotas/near.ts";
import type { EndingRun } from "../runs/services.ts";
import { createDeliver, type DelivererServices, logDropped } from "./deliverer.ts";
import { type Attempt, type Delivery, payload } from "./delivery.ts";
import {
  createDeliveryStore,
  DELIVERIES,
  type DeliveryStore,
  deliveriesOf,
  NOTIFICATIONS,
  parsedDelivery,
} from "./delivery-store.ts";
import type { ToldEvent } from "./events.ts";
import { createKnownWebhooks } from "./known-webhooks.ts";
import { createOutbox } from "./outbox.ts";
import { ATTEMPT_MS, createSend } from "./sender.ts";
import { type Keeper, secretsOf, type Webhook, webhookInfo, webhooksOf } from "./webhook.ts";
import { createWebhookStore, type WebhookStore } from "./webhook-store.ts";

export interface WebhookOptions {
  readonly documents: Documents;
  readonly runs: Pick<RunStore, "get">;
  readonly threads: Pick<ThreadStore, "get">;
  /** Whether deliveries outlive this process. */
  readonly isDurable: boolean;
  readonly logger: Logger;
  /** Of a user, and of a tenant. */
  readonly maxWebhooks: number;
  /** Private addresses that webhooks of users and tenants may have. */
  readonly allow: HostList;
  /** The webhook of the settings. */
  readonly operator?: { readonly url: string; readonly secret: string } | undefined;
  /** See `DelivererServices.onOutcome`. */
  onOutcome(whose: "operator" | "user", outcome: "delivered" | "failed"): void;
}

export interface Webhooks {
  readonly webhooks: WebhookStore;
  readonly deliveries: DeliveryStore;
  /**
   * Tells the webhooks of the owner, and of the owner's tenant, of an event; without `user`, those of the tenant only. The same `id` tells
   * them once. Never throws.
   */
  emit(owner: Keeper, told: ToldEvent, id: string): Promise<void>;
  /** See `RunServices.beforeEnd`. */
  beforeEnd(ending: EndingRun): Promise<() => void>;
  /** See `QuotaOptions.onNear`. */
  onNear(owner: Owner, state: BudgetState): void;
  /** Sends the webhook a sample, at once and without a retry. */
  test(keeper: Keeper, webhook: Webhook, signal: AbortSignal): Promise<Attempt>;
  /** To be called when a delivery has become due. */
  wake(): void;
  /** What is exported and deleted with a user. */
  readonly records: UserWebhooks;
  open(): Promise<void>;
  /** Leaves the deliveries that are not made yet to the store. */
  close(): Promise<void>;
}

interface UserWebhooks {
  /** Without secrets. */
  list(
    owner: Owner,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<object>>;
  /** Deletes the deliveries too. Returns the number of webhooks. */
  deleteAll(owner: Owner): Promise<number>;
  /** Deletes the deliveries of the tenant's webhooks that are about the user. */
  deleteMentions(owner: Owner): Promise<void>;
}

/** How long a process may be at a delivery, in ms: then others may send it. */
const LEASE_MS = ATTEMPT_MS + 5_000;
/** How often this process looks for deliveries that are due, in ms. */
const POLL_MS = 5_000;
const AT_ONCE = 32;
/** No notification is due later, in ms: one that is was written before the clock was set back. */
const AHEAD_MS = 2 * 3_600_000;
/** Attempts after a longer pause, in ms, wait for the next look. */
const MAX_TIMER_MS = 60_000;

/** The caller opens and closes it. */
export function createWebhooks(options: WebhookOptions): Webhooks {
  const { documents, logger, operator } = options;
  const known = createKnownWebhooks(documents, logger);
  const webhooks = createWebhookStore(documents, known, options.maxWebhooks);
  const deliveries = createDeliveryStore(documents);
  const send = createSend(createPublicFetch({ allow: options.allow }));
  const sending = createSending({
    ...options,
    webhooks,
    deliveries,
    send,
    operator: operator && operators(operator),
  });
  const { wake } = sending;
  const hasOperator = operator !== undefined;
  const outbox = createOutbox({ known, deliveries, logger, holdMs: LEASE_MS, hasOperator, wake });

  return {
    webhooks,
    deliveries,
    emit: (owner, event, id) => outbox.emit(owner, event, { id }),
    beforeEnd: outbox.beforeEnd,
    onNear(owner, { id, until, details }) {
      const whose = details.of === "tenant" ? { tenant: owner.tenant } : owner;
      void outbox.emit(whose, { type: "budget.near", data: details }, { id, keep_until: until });
    },
    test({ tenant, user }, webhook, signal) {
      const now = Date.now();
      const body = payload("webhook.test", { tenant, user, webhook_id: webhook.id }, now);
      const receiver = { url: webhook.url, secrets: secretsOf(webhook, now) };
      return send(receiver, { id: `msg_${randomId()}`, body }, signal);
    },
    wake,
    records: {
      async list(owner, page) {
        const { items, ...rest } = await webhooks.list(owner, page);
        return { ...rest, items: items.map((each) => webhookInfo(each, Date.now())) };
      },
      async deleteAll(owner) {
        const count = await retain(documents, webhooksOf(owner), { count: 0 });
        await retain(documents, deliveriesOf(owner), { count: 0 });
        known.forget(owner);
        return count;
      },
      deleteMentions: deliveries.forgetUser,
    },
    async open() {
      await known.open();
      sending.open();
    },
    async close() {
      known.close();
      await sending.close();
    },
  };
}

/** The operator's own network is no secret of the operator's: the address may be any. */
const operators = ({ url, secret }: { readonly url: string; readonly secret: string }) => ({
  receiver: { url, secrets: [secret] },
  send: createSend(createPublicFetch({ allow: () => true })),
});

type SendingServices = DelivererServices & Pick<WebhookOptions, "isDurable">;

/** Sends what is due, of all tenants in turn. */
function createSending(services: SendingServices) {
  const { documents, operator, isDurable, logger } = services;
  const deliver = createDeliver(services);
  /** Those that end with this process, by their keys. */
  const unsent = new Map<string, Delivery>();
  const work = async (claimed: ClaimedDocument, signal: AbortSignal) => {
    const delivery = parsedDelivery(claimed.body);
    if (!isDurable) unsent.set(claimed.key, delivery);
    const pause = await deliver(claimed, signal);
    if (pause === undefined && !signal.aborted) unsent.delete(claimed.key);
    // The next one of the thread is due.
    if (pause === undefined && delivery.lane !== undefined) wake();
    if (pause !== undefined && pause < MAX_TIMER_MS) setTimeout(wake, pause + 1).unref();
  };
  const times = { leaseMs: LEASE_MS, everyMs: POLL_MS, atOnce: AT_ONCE };
  const kinds = [{ kind: DELIVERIES }, ...(operator ? [{ kind: NOTIFICATIONS, aheadMs: AHEAD_MS }] : [])];
  const workers = kinds.map((each) => createDueWorker(documents, { ...each, work, ...times }, logger));
  const wake = () => {
    for (const worker of workers) worker.wake();
  };

  return {
    wake,
    open() {
      for (const worker of workers) worker.open();
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.close()));
      for (const delivery of unsent.values()) logDropped(logger, delivery, "the server is shutting down");
    },
  };
}
