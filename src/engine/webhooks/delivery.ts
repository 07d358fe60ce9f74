// A delivery: one event for one webhook. What the store keeps of it, what readers see, and what follows an attempt to send it.

import { createHash } from "node:crypto";
import { z } from "zod";
import { backoff } from "../../lib/backoff.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Keeper } from "./webhook.ts";

/** The webhook of the settings, which no document describes. */
export const OPERATOR = "operator";

export const DeliveryStatus = z.enum(["pending", "delivered", "failed"]);
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/** Absent keys: a release before this one has stored it for the operator's webhook. */
export const Delivery = z.object({
  /** The `webhook-id`. */
  id: z.string(),
  /** The id of the webhook. */
  webhook: z.string().default(OPERATOR),
  /** Whose event it is; without `user`, a tenant's. */
  owner: z.object({ tenant: z.string(), user: z.string().optional() }),
  type: z.string().default("run.interrupted"),
  thread_id: z.string().optional(),
  run_id: z.string().optional(),
  agent: z.string().optional(),
  body: z.string(),
  /** When the event happened, in ms since 1970. */
  at: z.number(),
  /** `prepared`: the end of the run is not stored yet, as far as its process has told. */
  state: z.enum(["prepared", ...DeliveryStatus.options]).default("prepared"),
  /** The status with which the run must have ended. */
  run_status: z.string().default("interrupted"),
  attempts: z.int().default(0),
  /** When the first of these attempts was possible. */
  since: z.number().optional(),
  next_at: z.number().optional(),
  last_at: z.number().optional(),
  http_status: z.int().optional(),
  failure: z.string().optional(),
  /** The document that keeps the order of the thread's deliveries. */
  lane: z.string().optional(),
  /** The store keeps it until then, so that the same event is not sent again. */
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

/** What a receiver reads. */
export const payload = (type: string, data: object, at: number): string =>
  JSON.stringify({ type, timestamp: iso(at), data });

/** The same for each attempt to tell a webhook of the same event, by any process. */
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
  /** Absent: it succeeded. */
  readonly failure?: string;
  /** A retry would fail the same way. */
  readonly isFinal?: boolean;
}

const HOUR = 3_600_000;
/** How long a delivery is tried again, in ms. */
const TRIED_MS = 24 * HOUR;
const PAUSE = { base: 500, cap: HOUR, jitter: 0.5 };
/** How long the store keeps a delivery that has succeeded, and one that was given up, in ms. */
const DELIVERED_MS = 24 * HOUR;
const FAILED_MS = 7 * 24 * HOUR;

/** The delivery after an attempt, and when it is due: for the next attempt, or to be forgotten. */
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

/** The delivery that is given up without an attempt. */
export function givenUp(delivery: Delivery, failure: string, now: number) {
  const { next_at: _, ...rest } = delivery;
  return settledAs({ ...rest, failure, state: "failed" }, now + FAILED_MS);
}

function settledAs(delivery: Delivery, until: number) {
  return { delivery, due: Math.max(until, delivery.keep_until ?? 0) };
}

/** The delivery to be sent once more, at once and outside of any order. */
export function again(delivery: Delivery, now: number): Delivery {
  const { lane: _, failure: __, http_status: ___, ...rest } = delivery;
  return { ...rest, state: "pending", attempts: 0, since: now, next_at: now };
}
