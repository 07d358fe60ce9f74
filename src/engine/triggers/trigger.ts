// The forms of a trigger: the settings that a user sends, the stored record, and what the user can read back.

import { randomBytes } from "node:crypto";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { Metadata } from "../../agent/core/records.ts";
import { boundedMap } from "../../lib/bounded-schemas.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { WEBHOOK_SECRET } from "../../lib/webhook-signature.ts";
import { pathFault, templateFault } from "./template.ts";
import { type Scheme, Verification } from "./verify.ts";

const withoutFault =
  (faultOf: (text: string) => string | undefined) => (text: string, context: z.RefinementCtx) => {
    const message = faultOf(text);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  };

const Template = z.string().min(1).max(16_384).superRefine(withoutFault(templateFault));
const Path = z.string().max(512).superRefine(withoutFault(pathFault));
const Expected = z.union([z.string().max(512), z.number(), z.boolean(), z.null()]);

/** The metadata of a trigger's run has one additional entry. */
const MAX_METADATA = 31;

export const Secret = z
  .string()
  .regex(
    /^[\x21-\x7e](?:[\x20-\x7e]{14,254})[\x21-\x7e]$/,
    "must be 16 to 256 characters of ASCII without spaces around",
  );

export const TriggerSpec = z
  .strictObject({
    agent: z.string().min(1).max(64).describe("Agent that each delivery runs."),
    verify: Verification.describe(
      "How the server verifies that a delivery comes from the sender. A delivery that it cannot verify gets 401.",
    ),
    secret: Secret.optional().describe(
      "Secret that the sender sends or signs with. Default: the trigger keeps its secret. For a new trigger, the server generates one, except for `slack` and `stripe`, which issue their own.",
    ),
    input: Template.describe(
      "Message that starts the run. `{{body.…}}`, `{{headers.…}}` and `{{delivery.id}}` are replaced with values from the delivery. Objects are inserted as JSON; a missing value is replaced with nothing.",
    ),
    thread: Template.default("new").describe(
      "`new`: each delivery starts a thread. Otherwise a template: deliveries that produce the same text share a thread, and one that produces an empty text starts a new thread.",
    ),
    delivery_id: Template.optional().describe(
      "Template for the id by which the server recognizes a repeated delivery. Default: the id that the scheme defines, otherwise a hash of the body.",
    ),
    filter: boundedMap(Path, z.array(Expected).min(1).max(50), 20)
      .default({})
      .describe(
        "Map from paths in the body to required values. Deliveries with another value at any of these paths are ignored.",
      ),
    metadata: Metadata.refine(
      (metadata) => Object.keys(metadata).length <= MAX_METADATA,
      `must have at most ${MAX_METADATA} keys`,
    )
      .default({})
      .describe("Metadata of each run. The run's metadata also has the trigger's id as `trigger`."),
    paused: z.boolean().default(false).describe("While a trigger is paused, its address returns 404."),
  })
  .meta({ id: "TriggerSpec" });
export type TriggerSpec = z.output<typeof TriggerSpec>;

const PauseReason = z.object({
  code: z.enum(["credentials_revoked", "credentials_expired", "agent_missing"]),
  message: z.string(),
  at: z.iso.datetime(),
});
export type PauseReason = z.infer<typeof PauseReason>;

/** A trigger as it is stored. */
export interface Trigger extends Omit<TriggerSpec, "secret"> {
  readonly id: string;
  /** The last part of its URL, which cannot be guessed. */
  readonly address: string;
  /** Absent until the user provides the secret that the sender created. */
  readonly secret?: string;
  /** The previous secret, valid until `until`. */
  readonly previous?: { readonly secret: string; readonly until: string };
  /** The time at which a process first failed to find the agent, in milliseconds since 1970. */
  readonly missing_since?: number;
  /** The reason why the server paused the trigger. */
  readonly paused_reason?: PauseReason;
  /** The id of the API key with which the trigger was last sent. Its runs start with this key. */
  readonly api_key?: string;
  readonly created_at: string;
  readonly updated_at: string;
}

/** A trigger as returned to its user. */
export const TriggerInfo = TriggerSpec.omit({ secret: true })
  .extend({
    id: z.string(),
    url: z
      .string()
      .describe("URL that the sender calls. Only a path if the server's public address is not configured."),
    has_secret: z
      .boolean()
      .describe("False until the sender's secret is set. Until then, all deliveries get 401."),
    old_secret_until: z.iso
      .datetime()
      .optional()
      .describe("Time until which the secret before the last rotation is also valid."),
    paused_reason: PauseReason.optional().describe("Present only if the server paused the trigger."),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: "Trigger" });
export type TriggerInfo = z.infer<typeof TriggerInfo>;

export const Delivery = z
  .object({
    at: z.iso.datetime(),
    id: z
      .string()
      .optional()
      .describe("Id of the delivery. Absent for a delivery that could not be verified."),
    outcome: z.enum(["started", "repeated", "ignored", "refused", "failed"]),
    reason: z.string().optional().describe("Why no run was started."),
    thread_id: z.string().optional(),
    run_id: z.string().optional(),
  })
  .meta({ id: "TriggerDelivery" });
export type Delivery = z.infer<typeof Delivery>;

export const RotateSecret = z
  .strictObject({
    secret: Secret.optional().describe("New secret. Default: the server generates one."),
    keep_old_for: z
      .int()
      .min(0)
      .max(7 * 86_400)
      .default(86_400)
      .describe("Seconds for which the old secret remains valid along with the new one."),
  })
  .default({ keep_old_for: 86_400 });
export type RotateSecret = z.output<typeof RotateSecret>;

export function triggerInfo(
  { address, secret, previous, api_key: _, missing_since: __, ...trigger }: Trigger,
  publicUrl: string | undefined,
  now = Date.now(),
): TriggerInfo {
  const url = `${publicUrl ?? ""}/hooks/${address}`;
  const until = previous && Date.parse(previous.until) > now ? previous.until : undefined;
  return { ...trigger, url, has_secret: secret !== undefined, ...omitUndefined({ old_secret_until: until }) };
}

/**
 * How long an agent must be missing before its triggers are paused, in milliseconds. During a deployment, only some
 * processes may have the agent.
 */
const MISSING_MS = 600_000;
/**
 * If no one checked for the agent for this long, in milliseconds, the time for which it has been missing starts over.
 */
const FORGOTTEN_MS = 3_600_000;

/**
 * Returns the trigger after a process found that it cannot start runs. `now` is the store's time, in milliseconds since
 * 1970.
 */
export function unfit(
  { missing_since: before = 0, ...trigger }: Trigger,
  reason: Omit<PauseReason, "at">,
  now: number,
): Trigger {
  const missing_since = now - before < FORGOTTEN_MS ? before : now;
  if (reason.code === "agent_missing" && now - missing_since < MISSING_MS)
    return { ...trigger, missing_since };
  return { ...trigger, paused: true, paused_reason: { ...reason, at: new Date(now).toISOString() } };
}

/** Returns the currently valid secrets. */
export function secretsOf({ secret, previous }: Trigger, now: number): string[] {
  if (secret === undefined) return [];
  return previous && Date.parse(previous.until) > now ? [secret, previous.secret] : [secret];
}

/** Schemes in which the sender creates the secret. */
const OWN_SECRETS: ReadonlySet<Scheme> = new Set(["slack", "stripe"]);

/** Returns a secret for a trigger without one, or undefined if the sender creates the secret. */
export function newSecret(scheme: Scheme): string | undefined {
  if (OWN_SECRETS.has(scheme)) return undefined;
  if (scheme === "standard-webhooks") return `whsec_${randomBytes(32).toString("base64")}`;
  return randomBytes(32).toString("base64url");
}

/** Throws `invalid_request` for an unsuitable secret. */
export function checkSecret(scheme: Scheme, secret: string | undefined): void {
  if (secret === undefined || scheme !== "standard-webhooks" || WEBHOOK_SECRET.test(secret)) return;
  throw new AppError(
    "invalid_request",
    "Invalid body: secret: must be `whsec_` and the base64 of 24 to 64 bytes, as Standard Webhooks has it.",
  );
}

/**
 * Replaces the trigger's secret with `next`. The previous secret remains valid for some seconds. Throws
 * `invalid_request` for a scheme in which the sender creates the secret.
 */
export function rotated(
  before: Trigger,
  next: string | undefined,
  keepSeconds: number,
  now: number,
): Trigger {
  const { previous: _, ...trigger } = before;
  if (next === undefined)
    throw new AppError(
      "invalid_request",
      `Invalid body: secret: is missing: a sender of the scheme \`${before.verify.scheme}\` creates its own secret.`,
    );
  const until = new Date(now + keepSeconds * 1000).toISOString();
  const isKept = before.secret !== undefined && keepSeconds > 0;
  const previous = isKept ? { secret: before.secret, until } : undefined;
  return {
    ...trigger,
    secret: next,
    updated_at: new Date(now).toISOString(),
    ...omitUndefined({ previous }),
  };
}
