// Sends events to the webhooks of users, tenants and the operator. Runs never wait for receivers. A delivery is stored
// before the end of its run. Then any process sends it, at least once, until the receiver accepts it or a day has
// passed.

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
  /** True if deliveries outlive this process. */
  readonly isDurable: boolean;
  readonly logger: Logger;
  /** The maximum number of webhooks per user, and per tenant. */
  readonly maxWebhooks: number;
  /** Private addresses that the webhooks of users and tenants can have. */
  readonly allow: HostList;
  /** The webhook from the settings. */
  readonly operator?: { readonly url: string; readonly secret: string } | undefined;
  /** See `DelivererServices.onOutcome`. */
  onOutcome(whose: "operator" | "user", outcome: "delivered" | "failed"): void;
}

export interface Webhooks {
  readonly webhooks: WebhookStore;
  readonly deliveries: DeliveryStore;
  /**
   * Sends an event to the webhooks of the owner and of the owner's tenant. Without `user`, sends the event only to the
   * webhooks of the tenant. Repeated calls with the same `id` send it only once. Never throws.
   */
  emit(owner: Keeper, told: ToldEvent, id: string): Promise<void>;
  /** See `RunServices.beforeEnd`. */
  beforeEnd(ending: EndingRun): Promise<() => void>;
  /** See `QuotaOptions.onNear`. */
  onNear(owner: Owner, state: BudgetState): void;
  /** Sends a sample to the webhook, at once and without a retry. */
  test(keeper: Keeper, webhook: Webhook, signal: AbortSignal): Promise<Attempt>;
  /** Call this when a delivery has become due. */
  wake(): void;
  /** The records to export and delete along with a user. */
  readonly records: UserWebhooks;
  open(): Promise<void>;
  /** Stops sending. Open deliveries remain in the store. */
  close(): Promise<void>;
}

interface UserWebhooks {
  /** Returns the webhooks without secrets. */
  list(
    owner: Owner,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<object>>;
  /** Deletes a user's webhooks and their deliveries. Returns the number of webhooks. */
  deleteAll(owner: Owner): Promise<number>;
  /** Deletes the deliveries of the tenant's webhooks that are about the user. */
  deleteMentions(owner: Owner): Promise<void>;
}

/** How long a process can work on a delivery before others may send it, in milliseconds. */
const LEASE_MS = ATTEMPT_MS + 5_000;
/** How often this process checks for due deliveries, in milliseconds. */
const POLL_MS = 5_000;
const AT_ONCE = 32;
/**
 * How far in the future a notification can be due, in milliseconds. A notification with a later due time was written
 * before the clock was set back.
 */
const AHEAD_MS = 2 * 3_600_000;
/** Attempts after a longer pause than this, in milliseconds, wait for the next check. */
const MAX_TIMER_MS = 60_000;

/** The caller must open and close it. */
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

/** The operator's webhook can have any address, because the operator chose it. */
const operators = ({ url, secret }: { readonly url: string; readonly secret: string }) => ({
  receiver: { url, secrets: [secret] },
  send: createSend(createPublicFetch({ allow: () => true })),
});

type SendingServices = DelivererServices & Pick<WebhookOptions, "isDurable">;

/** Sends due deliveries, with tenants taking turns. */
function createSending(services: SendingServices) {
  const { documents, operator, isDurable, logger } = services;
  const deliver = createDeliver(services);
  /** The unsent deliveries that are lost when this process ends, by key. */
  const unsent = new Map<string, Delivery>();
  const work = async (claimed: ClaimedDocument, signal: AbortSignal) => {
    const delivery = parsedDelivery(claimed.body);
    if (!isDurable) unsent.set(claimed.key, delivery);
    const pause = await deliver(claimed, signal);
    if (pause === undefined && !signal.aborted) unsent.delete(claimed.key);
    // The thread's next delivery is due.
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
