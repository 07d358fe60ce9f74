// A delivery is one event for one webhook. Defines its stored form, its public form, and its state after an attempt.

import { createHash } from "node:crypto";
import { z } from "zod";
import { backoff } from "../../lib/backoff.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Keeper } from "./webhook.ts";

/** The webhook from the settings, which has no document. */
export const OPERATOR = "operator";

export const DeliveryStatus = z.enum(["pending", "delivered", "failed"]);
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/** Fields with defaults may be absent in deliveries that an earlier release stored for the operator's webhook. */
export const Delivery = z.object({
  /** The `webhook-id`. */
  id: z.string(),
  /** The id of the webhook. */
  webhook: z.string().default(OPERATOR),
  /** The owner of the event: a user or, without `user`, a tenant. */
  owner: z.object({ tenant: z.string(), user: z.string().optional() }),
  type: z.string().default("run.interrupted"),
  thread_id: z.string().optional(),
  run_id: z.string().optional(),
  agent: z.string().optional(),
  body: z.string(),
  /** The time of the event, in milliseconds since 1970. */
  at: z.number(),
  /** `prepared`: no process has confirmed yet that the end of the run is stored. */
  state: z.enum(["prepared", ...DeliveryStatus.options]).default("prepared"),
  /** The status with which the run must end. */
  run_status: z.string().default("interrupted"),
  attempts: z.int().default(0),
  /** The time since which attempts have been possible. */
  since: z.number().optional(),
  next_at: z.number().optional(),
  last_at: z.number().optional(),
  http_status: z.int().optional(),
  failure: z.string().optional(),
  /** The document that keeps the order of the thread's deliveries. */
  lane: z.string().optional(),
  /** Keeps the document until this time, so the same event is not sent again. */
  keep_until: z.number().optional(),
});
export type Delivery = z.infer<typeof Delivery>;

export const DeliveryInfo = z
  .object({
    id: z.string().describe("Value of the `webhook-id` header, the same in every attempt."),
    webhook_id: z.string(),
    type: z.string().describe("The event, such as `run.ended`."),
    status: DeliveryStatus.describe(
      "`failed`: the server has given up. To resend the delivery, use `POST …/send`.",
    ),
    thread_id: z.string().optional(),
    run_id: z.string().optional(),
    agent: z.string().optional(),
    attempts: z.int(),
    created_at: z.iso.datetime(),
    last_attempt_at: z.iso.datetime().optional(),
    next_attempt_at: z.iso.datetime().optional(),
    http_status: z.int().optional().describe("Status of the receiver's last response."),
    error: z.string().optional().describe("Reason why the last attempt failed."),
  })
  .meta({ id: "WebhookDelivery" });
export type DeliveryInfo = z.infer<typeof DeliveryInfo>;

const iso = (ms: number) => new Date(ms).toISOString();
const isoOr = (ms: number | undefined) => (ms === undefined ? undefined : iso(ms));

export const statusOf = ({ state }: Pick<Delivery, "state">): DeliveryStatus =>
  state === "prepared" ? "pending" : state;

export function deliveryInfo(delivery: Delivery): DeliveryInfo {
  const { id, webhook, type, thread_id, run_id, agent, attempts, at, http_status, failure } = delivery;
  return {
    ...{ id, webhook_id: webhook, type, status: statusOf(delivery), attempts, created_at: iso(at) },
    ...omitUndefined({ thread_id, run_id, agent, http_status, error: failure }),
    ...omitUndefined({ last_attempt_at: isoOr(delivery.last_at), next_attempt_at: isoOr(delivery.next_at) }),
  };
}

/** Returns the body that a receiver gets. */
export const payload = (type: string, data: object, at: number): string =>
  JSON.stringify({ type, timestamp: iso(at), data });

/** Returns the same id for every attempt to deliver the same event to a webhook, in any process. */
export function deliveryId({ tenant, user }: Keeper, webhook: string, event: string): string {
  const hash = createHash("sha256").update(JSON.stringify([tenant, user, webhook, event]));
  return `msg_${hash.digest("base64url").slice(0, 22)}`;
}

export const laneOf = (webhook: string, threadId: string): string =>
  `lane_${createHash("sha256")
    .update(JSON.stringify([webhook, threadId]))
    .digest("base64url")
    .slice(0, 22)}`;

/** An attempt to send a delivery. */
export interface Attempt {
  readonly http_status?: number;
  /** Absent if the attempt succeeded. */
  readonly failure?: string;
  /** A retry would fail the same way. */
  readonly isFinal?: boolean;
}

const HOUR = 3_600_000;
/** How long a delivery is retried, in milliseconds. */
const TRIED_MS = 24 * HOUR;
const PAUSE = { base: 500, cap: HOUR, jitter: 0.5 };
/** How long the store keeps successful and failed deliveries, in milliseconds. */
const DELIVERED_MS = 24 * HOUR;
const FAILED_MS = 7 * 24 * HOUR;

/** Returns the delivery after an attempt, and the time at which it is due for a retry or for deletion. */
export function afterAttempt(
  delivery: Delivery,
  { http_status, failure, isFinal = false }: Attempt,
  now: number,
): { readonly delivery: Delivery; readonly due: number } {
  const { next_at: _, failure: __, http_status: ___, ...rest } = delivery;
  const about = { last_at: now, attempts: delivery.attempts + 1, ...omitUndefined({ http_status, failure }) };
  const next = { ...rest, ...about };
  if (failure === undefined) return settledAs({ ...next, state: "delivered" }, now + DELIVERED_MS);
  if (isFinal || now - (delivery.since ?? delivery.at) >= TRIED_MS)
    return settledAs({ ...next, state: "failed" }, now + FAILED_MS);
  const due = Math.ceil(now + backoff(delivery.attempts, PAUSE));
  return { delivery: { ...next, state: "pending", next_at: due }, due };
}

/** Returns the delivery marked as failed, without making an attempt. */
export function givenUp(delivery: Delivery, failure: string, now: number) {
  const { next_at: _, ...rest } = delivery;
  return settledAs({ ...rest, failure, state: "failed" }, now + FAILED_MS);
}

function settledAs(delivery: Delivery, until: number) {
  return { delivery, due: Math.max(until, delivery.keep_until ?? 0) };
}

/** Returns a delivery that is sent once more, immediately and regardless of the order. */
export function again(delivery: Delivery, now: number): Delivery {
  const { lane: _, failure: __, http_status: ___, ...rest } = delivery;
  return { ...rest, state: "pending", attempts: 0, since: now, next_at: now };
}
