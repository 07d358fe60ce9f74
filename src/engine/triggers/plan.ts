// Plans the run that a verified delivery starts: its input, its thread and its idempotency key. The key makes a
// repeated delivery return the same run.

import { type DeliveryValues, filled, valueAt } from "./template.ts";
import type { Trigger } from "./trigger.ts";
import { digestOf, type RawDelivery, readableHeaders, sentId, signsBodyOnly } from "./verify.ts";

export interface PlannedRun {
  readonly agent: string;
  readonly input: string;
  readonly thread_id: string;
  readonly delivery_id: string;
  readonly sent_id: string;
  readonly metadata: Trigger["metadata"];
}

/** The reason why a delivery starts no run. */
export interface IgnoredDelivery {
  readonly ignored: string;
  /** Stays the same if the delivery is sent again. */
  readonly delivery_id: string;
  /** The sender's id for the delivery. */
  readonly sent_id: string;
}

type PlannedTrigger = Pick<
  Trigger,
  "id" | "agent" | "verify" | "input" | "thread" | "delivery_id" | "filter" | "metadata"
>;

/** The maximum length of a delivery's id. Longer ids are replaced by their hash. */
const MAX_ID = 128;

/** `body` is the parsed body. */
export function planOf(
  trigger: PlannedTrigger,
  { headers, raw }: RawDelivery,
  body: unknown,
): PlannedRun | IgnoredDelivery {
  const readable = readableHeaders(trigger.verify, headers);
  const digest = digestOf(raw);
  const sent = shortened(sentId(trigger.verify, headers, body)) ?? digest;
  const ofSender = signsBodyOnly(trigger.verify) ? digest : sent;
  const named =
    trigger.delivery_id &&
    filled(trigger.delivery_id, { body, headers: readable, delivery: { id: ofSender } });
  const delivery_id = shortened(named) ?? ofSender;
  const sent_id = shortened(named) ?? sent;
  const values: DeliveryValues = { body, headers: readable, delivery: { id: delivery_id } };
  const ignored = systemEvent(trigger, values) ?? filteredBy(trigger, values);
  if (ignored !== undefined) return { ignored, delivery_id, sent_id };
  const input = filled(trigger.input, values);
  if (input.trim() === "") return { ignored: "the input is empty", delivery_id, sent_id };
  return {
    agent: trigger.agent,
    input,
    thread_id: threadOf(trigger, values),
    delivery_id,
    sent_id,
    metadata: { ...trigger.metadata, trigger: trigger.id },
  };
}

const shortened = (id: string | undefined) =>
  id === undefined || id === "" ? undefined : id.length <= MAX_ID ? id : digestOf(id);

/**
 * Thread ids are derived from hashes, so the text of a delivery cannot name a thread of the user or of another trigger.
 */
function threadOf({ id, thread }: PlannedTrigger, values: DeliveryValues): string {
  const text = thread === "new" ? "" : filled(thread, values);
  const place = text === "" ? ["delivery", values.delivery.id] : ["thread", text];
  return `hook_${digestOf(JSON.stringify([id, ...place])).slice(0, 32)}`;
}

/** Returns why a delivery should be ignored, if it is a system event of its scheme rather than a user's event. */
function systemEvent({ verify }: PlannedTrigger, values: DeliveryValues): string | undefined {
  if (verify.scheme === "github" && values.headers["x-github-event"] === "ping") return "ping of GitHub";
  // Ignores messages from bots; otherwise, an agent that posts to the channel would answer itself.
  if (verify.scheme === "slack" && valueAt(values, "body.event.bot_id") !== undefined)
    return "message from a bot";
  return undefined;
}

function filteredBy({ filter }: PlannedTrigger, values: DeliveryValues): string | undefined {
  for (const [path, allowed] of Object.entries(filter))
    if (!allowed.some((value) => value === (valueAt(values, path) ?? null))) return `filter of ${path}`;
  return undefined;
}

/** Returns the idempotency key of a delivery's run. */
export const keyOf = (deliveryId: string): string => `delivery:${digestOf(deliveryId)}`;

/** Returns the challenge of a sender that verifies the address, or undefined for any other delivery. */
export function challengeOf({ verify }: Pick<Trigger, "verify">, body: unknown): string | undefined {
  if (verify.scheme !== "slack") return undefined;
  const { type, challenge } = Object(body);
  return type === "url_verification" && typeof challenge === "string" ? challenge : undefined;
}
