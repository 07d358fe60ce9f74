// An entry of the trail: who did what to what, when and from where. Entries contain only ids, no contents and no
// secrets.

import { z } from "zod";
import type { OwnedCollection } from "../../agent/core/documents.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { randomId } from "../../lib/random-id.ts";

const ActorType = z.enum(["key", "user", "operator", "schedule", "trigger", "agent", "server"]);

export const Actor = z
  .object({
    type: ActorType.describe(
      "`key`: an API key. `user`: a user with other credentials. `operator`: the scope `operator` was used. `schedule`, `trigger`, `agent`: the schedule, trigger or agent acted by itself. `server`: the server itself.",
    ),
    id: z.string().describe("Id of the key, schedule or trigger, or name of the user or agent."),
    user: z
      .string()
      .optional()
      .describe("User who owns the credentials, the schedule or the trigger, or for whom the agent works."),
    tenant: z
      .string()
      .optional()
      .describe("The operator's own tenant, if the operator acted on another tenant."),
  })
  .meta({ id: "AuditActor" });
export type Actor = z.infer<typeof Actor>;

const Target = z
  .object({
    type: z.string(),
    id: z.string(),
    user: z.string().optional().describe("Owner of the target."),
  })
  .meta({ id: "AuditTarget" });
export type Target = z.infer<typeof Target>;

export const AuditOutcome = z.enum(["ok", "refused", "failed"]);
export type AuditOutcome = z.infer<typeof AuditOutcome>;

export const AuditEntry = z
  .object({
    id: z.string(),
    at: z.iso.datetime().describe("Time at which the request arrived, or at which the server acted."),
    tenant: z.string(),
    actor: Actor,
    action: z.string().describe("Action, such as `thread.delete`."),
    target: Target.optional(),
    outcome: AuditOutcome.describe(
      "`refused`: the action was not allowed, or its target was not found. `failed`: it failed with another error. `ok`: it succeeded.",
    ),
    status: z.int().optional().describe("Status of the HTTP response."),
    request_id: z.string().optional(),
    ip: z.string().optional().describe("Address of the client."),
    dropped: z
      .int()
      .optional()
      .describe("With the action `audit.gap`: number of entries that the server could not store."),
  })
  .meta({ id: "AuditEntry" });
export type AuditEntry = z.infer<typeof AuditEntry>;

/** An entry as other rooms report it. `at` is in milliseconds since 1970 and defaults to now. */
export interface NewEntry extends Omit<AuditEntry, "id" | "at" | "target"> {
  readonly at?: number | undefined;
  readonly target?: Target | undefined;
}

/** The maximum length of an id in an entry. Longer ids are cut off. */
const MAX_ID = 256;
const cut = (text: string) => text.slice(0, MAX_ID);

export function entryOf({ at = Date.now(), target, ...entry }: NewEntry): AuditEntry {
  const cutTarget = target && { ...target, id: cut(target.id) };
  const about = { id: `aud_${randomId()}`, at: new Date(at).toISOString() };
  return { ...about, ...entry, ...omitUndefined({ target: cutTarget }) };
}

/** Returns the collection that stores a tenant's trail. */
export const trailOf = (tenant: string): OwnedCollection => ({ kind: "audit", tenant });

const TIME_DIGITS = 9;
const LAST_TIME = 36 ** TIME_DIGITS - 1;
const COUNT_DIGITS = 4;
const LAST_COUNT = 36 ** COUNT_DIGITS - 1;
let counted = 0;

/**
 * Returns the prefix shared by the keys of all entries from one millisecond. Later times sort first, so a list by key
 * begins with the newest entry.
 */
export const keyAt = (ms: number): string =>
  Math.min(Math.max(LAST_TIME - ms, 0), LAST_TIME)
    .toString(36)
    .padStart(TIME_DIGITS, "0");

/** Entries that one process makes within the same millisecond keep their order. */
export function keyOf({ id, at }: Pick<AuditEntry, "id" | "at">): string {
  counted = (counted + 1) % (LAST_COUNT + 1);
  const order = (LAST_COUNT - counted).toString(36).padStart(COUNT_DIGITS, "0");
  return `${keyAt(Date.parse(at))}${order}${id}`;
}

/** Returns true if the text can be the key of an entry. */
export const isKey = (text: string): boolean => /^[0-9a-z]{13}aud_[0-9A-Za-z]{22}$/.test(text);
