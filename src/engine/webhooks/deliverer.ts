// Processes a due delivery: checks that it is still valid, attempts to send it, and stores the result.

import type { ClaimedDocument } from "../../agent/core/document-claims.ts";
import type { Documents } from "../../agent/core/documents.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import type { RunStore, ThreadStore } from "../../agent/core/stores.ts";
import type { Logger } from "../../lib/logger.ts";
import { type Attempt, afterAttempt, type Delivery, givenUp, OPERATOR } from "./delivery.ts";
import { type DeliveryStore, parsedDelivery } from "./delivery-store.ts";
import type { Receiver, Send } from "./sender.ts";
import {
  parsedWebhook,
  secretsOf,
  silenceOf,
  type Webhook,
  afterAttempt as webhookAfter,
  webhooksOf,
} from "./webhook.ts";
import type { WebhookStore } from "./webhook-store.ts";

export interface DelivererServices {
  readonly documents: Documents;
  readonly runs: Pick<RunStore, "get">;
  readonly threads: Pick<ThreadStore, "get">;
  readonly webhooks: WebhookStore;
  readonly deliveries: DeliveryStore;
  readonly logger: Logger;
  /** Sends to the webhooks of users and tenants. */
  readonly send: Send;
  /** Absent if the settings contain no webhook. */
  readonly operator?: { readonly receiver: Receiver; readonly send: Send } | undefined;
  /** Called when a delivery has succeeded or failed for good. Must return at once and not throw. */
  onOutcome(whose: "operator" | "user", outcome: "delivered" | "failed"): void;
}

/** Returns how many milliseconds to wait before the next attempt, or undefined if nothing more will be sent. */
type Deliver = (claimed: ClaimedDocument, signal: AbortSignal) => Promise<number | undefined>;

/** The receiver of a delivery. */
interface DeliveryTarget {
  readonly receiver: Receiver;
  readonly send: Send;
  /** Absent for the operator's webhook. */
  readonly webhook?: Webhook;
}

/** The function throws the store's errors; the delivery is then due again. */
export function createDeliver(services: DelivererServices): Deliver {
  const { documents, deliveries, operator } = services;

  /** Returns the target of a delivery, and the store's time. */
  const targetOf = async (
    { collection, key }: ClaimedDocument,
    delivery: Delivery,
  ): Promise<{ readonly target: DeliveryTarget | undefined; readonly now: number }> => {
    if (delivery.webhook === OPERATOR) {
      const { now } = await documents.read(collection, [key]);
      return { target: operator, now };
    }
    const { found, now } = await documents.read(webhooksOf(collection), [delivery.webhook]);
    const webhook = found[0] && parsedWebhook(found[0].body);
    if (!webhook) return { target: undefined, now };
    const receiver = { url: webhook.url, secrets: secretsOf(webhook, now) };
    return { target: { receiver, send: services.send, webhook }, now };
  };

  return async (claimed, signal) => {
    const delivery = parsedDelivery(claimed.body);
    const forget = async () => void (await deliveries.settle(claimed, undefined, null));
    // The retention time has passed.
    if (delivery.state === "delivered" || delivery.state === "failed") return forget();
    const truth = await truthOf(delivery, services);
    if (truth === "false") return forget();
    if (truth === "open") return undefined;
    const { target, now } = await targetOf(claimed, delivery);
    if (!target) return forget();
    const silence = target.webhook && silenceOf(target.webhook);
    if (silence !== undefined) {
      const { delivery: next, due } = givenUp(delivery, silence, now);
      await deliveries.settle(claimed, next, due);
      return undefined;
    }
    const attempt = await target.send(target.receiver, delivery, signal);
    if (signal.aborted && attempt.failure !== undefined) {
      await deliveries.settle(claimed, { ...delivery, next_at: now }, now);
      return undefined;
    }
    return follow(services, claimed, { delivery, attempt, target, now });
  };
}

/**
 * Compares a prepared delivery with its run. Returns `open` if the run has not ended. Returns `false` if it ended
 * differently or was answered, so nothing is sent.
 */
async function truthOf(
  { state, webhook, owner: { tenant, user = "" }, thread_id = "", run_id = "", run_status }: Delivery,
  { runs, threads }: Pick<DelivererServices, "runs" | "threads">,
): Promise<"true" | "false" | "open"> {
  const isOperators = webhook === OPERATOR;
  if (state !== "prepared" && !isOperators) return "true";
  const owner = { tenant, user };
  const run: RunRecord | undefined = await runs.get(owner, thread_id, run_id);
  // The process died before it stored the end of the run. Another process will end the run again.
  if (run && !isSettled(run.status)) return "open";
  // The run ended and was deleted along with its thread.
  if (!run && !isOperators) return "true";
  if (run?.status !== run_status) return "false";
  if (!isOperators) return "true";
  return (await threads.get(owner, thread_id))?.status === "interrupted" ? "true" : "false";
}

interface AttemptFacts {
  readonly delivery: Delivery;
  readonly attempt: Attempt;
  readonly target: DeliveryTarget;
  readonly now: number;
}

async function follow(
  services: DelivererServices,
  claimed: ClaimedDocument,
  { delivery, attempt, target: { webhook }, now }: AttemptFacts,
): Promise<number | undefined> {
  const { deliveries, onOutcome } = services;
  const { delivery: next, due } = afterAttempt(delivery, attempt, now);
  const isOver = next.state !== "pending";
  // Deliveries of the operator's webhook are not listed, so they are not kept.
  const isForgotten = isOver && webhook === undefined;
  const isWritten = await deliveries.settle(
    claimed,
    isForgotten ? undefined : next,
    isForgotten ? null : due,
  );
  if (webhook) await noteHealth(services, claimed, webhook, { failure: attempt.failure, now });
  if (!isWritten) return undefined;
  if (!isOver) return due - now;
  onOutcome(webhook ? "user" : "operator", attempt.failure === undefined ? "delivered" : "failed");
  if (!webhook && attempt.failure !== undefined) logDropped(services.logger, delivery, attempt.failure);
  return undefined;
}

export function logDropped(
  logger: Logger,
  { id, webhook, owner, run_id, thread_id }: Delivery,
  why: string,
): void {
  const details = { webhook_id: id, tenant: owner.tenant, run_id, thread_id, why };
  if (webhook === OPERATOR) logger.error(details, "a webhook notification was dropped");
  else logger.warn({ ...details, webhook }, "a webhook delivery was dropped");
}

/** Records how long a webhook has been failing, and disables the webhook if it has been failing for too long. */
async function noteHealth(
  { webhooks, logger }: Pick<DelivererServices, "webhooks" | "logger">,
  { collection }: ClaimedDocument,
  webhook: Webhook,
  { failure, now }: { readonly failure: string | undefined; readonly now: number },
): Promise<void> {
  if (!webhookAfter(webhook, failure, now)) return;
  const written = await webhooks.update(collection, webhook.id, (before) =>
    webhookAfter(before, failure, now),
  );
  if (!written?.disabled || webhook.disabled) return;
  const { tenant, user } = collection;
  const { reason } = written.disabled;
  logger.warn({ tenant, user, webhook: webhook.id, reason }, "a webhook was disabled");
}
