// Works on a delivery that is due: looks whether it still holds, makes an attempt, and stores what follows.

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
  /** Of webhooks of users and tenants. */
  readonly send: Send;
  /** Absent: the settings have no webhook. */
  readonly operator?: { readonly receiver: Receiver; readonly send: Send } | undefined;
  /** Called for each delivery that is over. Must return at once and not throw. */
  onOutcome(whose: "operator" | "user", outcome: "delivered" | "failed"): void;
}

/** How long the receiver of a delivery is let alone, in ms; undefined: nothing more is sent. */
type Deliver = (claimed: ClaimedDocument, signal: AbortSignal) => Promise<number | undefined>;

/** Where a delivery goes. */
interface Target {
  readonly receiver: Receiver;
  readonly send: Send;
  /** Absent: the operator's. */
  readonly webhook?: Webhook;
}

/** Throws what the store throws: the delivery is then due again. */
export function createDeliver(services: DelivererServices): Deliver {
  const { documents, deliveries, operator } = services;

  /** Where a delivery goes, and the time of the store. */
  const targetOf = async (
    { collection, key }: ClaimedDocument,
    delivery: Delivery,
  ): Promise<{ readonly target: Target | undefined; readonly now: number }> => {
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
    // The time for which it was kept is over.
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

/** `open`: the run has not ended. `false`: it ended in another way, or has its answer, so the receiver hears nothing. */
async function truthOf(
  { state, webhook, owner: { tenant, user = "" }, thread_id = "", run_id = "", run_status }: Delivery,
  { runs, threads }: Pick<DelivererServices, "runs" | "threads">,
): Promise<"true" | "false" | "open"> {
  const isOperators = webhook === OPERATOR;
  if (state !== "prepared" && !isOperators) return "true";
  const owner = { tenant, user };
  const run: RunRecord | undefined = await runs.get(owner, thread_id, run_id);
  // Its process died before the end of the run was stored: the run will end again.
  if (run && !isSettled(run.status)) return "open";
  // It ended, and was deleted with its thread.
  if (!run && !isOperators) return "true";
  if (run?.status !== run_status) return "false";
  if (!isOperators) return "true";
  return (await threads.get(owner, thread_id))?.status === "interrupted" ? "true" : "false";
}

interface Followed {
  readonly delivery: Delivery;
  readonly attempt: Attempt;
  readonly target: Target;
  readonly now: number;
}

async function follow(
  services: DelivererServices,
  claimed: ClaimedDocument,
  { delivery, attempt, target: { webhook }, now }: Followed,
): Promise<number | undefined> {
  const { deliveries, onOutcome } = services;
  const { delivery: next, due } = afterAttempt(delivery, attempt, now);
  const isOver = next.state !== "pending";
  // The operator's own is not listed anywhere.
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
  else logger.warn({ ...details, webhook }, "a delivery of a webhook was dropped");
}

/** Notes since when a webhook fails, and disables one that has failed for too long. */
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
