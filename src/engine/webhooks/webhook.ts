// Webhooks of users and tenants: what a request can set, what the store keeps, what readers see, and which webhooks an
// event is sent to.

import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { OwnedCollection } from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import { HttpUrl } from "../../lib/http-url.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { Id } from "../../protocol/ids.ts";

/** The owner of webhooks: a user or, without `user`, a tenant, whose webhooks cover all its users. */
export interface Keeper {
  readonly tenant: string;
  readonly user?: string;
}

/** Returns the collection that stores the keeper's webhooks. */
export const webhooksOf = ({ tenant, user }: Keeper): OwnedCollection =>
  user === undefined ? { kind: "webhooks", tenant } : { kind: "webhooks", tenant, user };

/** The events that a webhook can subscribe to. */
export const WebhookEvent = z.enum([
  "run.ended",
  "run.failed",
  "interrupt.opened",
  "budget.near",
  "schedule.paused",
  "audit.entry",
]);
export type WebhookEvent = z.infer<typeof WebhookEvent>;

const unique = (values: readonly string[]) => new Set(values).size === values.length;

export const WebhookSpec = z
  .strictObject({
    url: HttpUrl.describe("Address that receives each event as a POST request."),
    on: z
      .array(WebhookEvent)
      .min(1)
      .max(WebhookEvent.options.length)
      .refine(unique, "must name each event once")
      .describe(
        "Events to send. `run.ended`: a run ended without an error. `run.failed`: a run ended with an error. `interrupt.opened`: a run is waiting for answers. `budget.near`: most of a budget has been used. `schedule.paused`: the server paused a schedule. `audit.entry`: an entry was added to the audit trail; tenant webhooks only.",
      ),
    agents: z
      .array(z.string().min(1).max(64))
      .min(1)
      .max(50)
      .refine(unique, "must name each agent once")
      .optional()
      .describe("Names of agents. Events of other agents are not sent. Default: all agents."),
    ordered: z
      .boolean()
      .default(false)
      .describe(
        "Sends a thread's events in order. Each event waits until the previous one has been delivered or has failed.",
      ),
    paused: z.boolean().default(false).describe("While true, the server sends nothing."),
  })
  .meta({ id: "WebhookSpec" });
export type WebhookSpec = z.infer<typeof WebhookSpec>;

export const NewWebhook = WebhookSpec.extend({
  id: Id.optional().describe("Default: the server generates an id."),
}).meta({ id: "NewWebhook" });

const Disabled = z.object({ at: z.iso.datetime(), reason: z.string() });

/** A webhook as it is stored. Its secret leaves the server only in the response that creates the secret. */
export const Webhook = WebhookSpec.extend({
  id: Id,
  secret: z.string(),
  /** The secret before the last rotation. Until `until`, deliveries are signed with both secrets. */
  previous: z.object({ secret: z.string(), until: z.iso.datetime() }).optional(),
  /** Absent if the last delivery succeeded, and before the first delivery. */
  failing_since: z.iso.datetime().optional(),
  /** The number of failures since then, counted up to `MIN_FAILURES`. */
  failures: z.int().optional(),
  disabled: Disabled.optional(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
});
export type Webhook = z.infer<typeof Webhook>;

export const parsedWebhook = (body: string): Webhook => Webhook.parse(JSON.parse(body));

export const WebhookInfo = Webhook.omit({ secret: true, previous: true, failures: true })
  .extend({
    url: z.string().describe("Address without its query."),
    previous_secret_until: z.iso
      .datetime()
      .optional()
      .describe(
        "Time until which deliveries also carry a signature made with the secret from before the last rotation.",
      ),
    failing_since: z.iso
      .datetime()
      .optional()
      .describe("Time of the first failure since the last successful delivery."),
    disabled: Disabled.optional().describe(
      "Present if the server has disabled the webhook because all its deliveries failed for a day. `PUT` enables it again.",
    ),
  })
  .meta({ id: "Webhook" });
export type WebhookInfo = z.infer<typeof WebhookInfo>;

/** The response that creates a secret. */
export const WebhookWithSecret = WebhookInfo.extend({
  secret: z
    .string()
    .optional()
    .describe("Secret for verifying signatures. Returned only in the response that creates it."),
}).meta({ id: "WebhookWithSecret" });

export function webhookInfo(
  { secret: _, failures: __, previous, url, ...rest }: Webhook,
  now: number,
): WebhookInfo {
  const { origin, pathname } = new URL(url);
  const until = previous && Date.parse(previous.until) > now ? previous.until : undefined;
  return { ...rest, url: origin + pathname, ...omitUndefined({ previous_secret_until: until }) };
}

const SECRET_BYTES = 32;
/** How long the previous secret still signs deliveries after a rotation, in milliseconds. */
const PREVIOUS_SECRET_MS = 24 * 3_600_000;
/**
 * A webhook is disabled after failing for this long without a success, in milliseconds, if there were at least
 * `MIN_FAILURES` failures.
 */
const FAILING_MS = 24 * 3_600_000;
const MIN_FAILURES = 5;

const newSecret = () => `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;
const iso = (ms: number) => new Date(ms).toISOString();

/** Returns an enabled webhook with the settings in `spec`. It keeps the secret of `before`. */
export function webhookOf(id: string, spec: WebhookSpec, before: Webhook | undefined, now: number): Webhook {
  const { secret = newSecret(), previous, created_at = iso(now) } = before ?? {};
  return { ...spec, id, secret, created_at, updated_at: iso(now), ...omitUndefined({ previous }) };
}

/** Returns the webhook with a new secret. For a day, the previous secret also signs deliveries. */
export function rotated(webhook: Webhook, now: number): Webhook {
  const previous = { secret: webhook.secret, until: iso(now + PREVIOUS_SECRET_MS) };
  return { ...webhook, secret: newSecret(), previous, updated_at: iso(now) };
}

/** Returns the secrets that sign a delivery, newest first. */
export function secretsOf({ secret, previous }: Pick<Webhook, "secret" | "previous">, now: number): string[] {
  return previous && Date.parse(previous.until) > now ? [secret, previous.secret] : [secret];
}

/** Returns the webhook after an attempt, if the attempt changes it. */
export function afterAttempt(
  webhook: Webhook,
  failure: string | undefined,
  now: number,
): Webhook | undefined {
  const { failing_since, failures = 0, ...rest } = webhook;
  if (failure === undefined) return failing_since === undefined ? undefined : rest;
  if (failing_since === undefined) return { ...rest, failing_since: iso(now), failures: 1 };
  if (webhook.disabled) return undefined;
  const isLong = now - Date.parse(failing_since) >= FAILING_MS;
  if (!isLong || failures + 1 < MIN_FAILURES)
    return failures < MIN_FAILURES ? { ...webhook, failures: failures + 1 } : undefined;
  const reason = `No delivery has succeeded since ${failing_since}. The last one failed: ${failure}.`;
  return { ...webhook, disabled: { at: iso(now), reason } };
}

/** Returns the reason why nothing is sent to a webhook now. */
export function silenceOf({ paused, disabled }: Pick<Webhook, "paused" | "disabled">): string | undefined {
  if (disabled) return "the webhook is disabled";
  return paused ? "the webhook is paused" : undefined;
}

/**
 * Returns true if this event is sent to the webhook. An event without an agent is sent regardless of the webhook's
 * agents.
 */
export function wants(
  webhook: Webhook,
  { type, agent }: { type: WebhookEvent; agent?: string | undefined },
): boolean {
  const { on: events, agents } = webhook;
  if (silenceOf(webhook) !== undefined || !events.includes(type)) return false;
  return agent === undefined || (agents?.includes(agent) ?? true);
}

export const noWebhook = (id: string) => new AppError("not_found", `There is no webhook \`${id}\`.`);
