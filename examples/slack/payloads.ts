// The payloads that Slack sends, limited to the fields that the plugin reads.

import { z } from "skein";

const SlackId = z.string().regex(/^[A-Z0-9]{1,32}$/);
/** The timestamp of a message, which is also its id within its channel. */
const Ts = z.string().regex(/^\d{1,16}\.\d{1,10}$/);

const Message = z.object({
  type: z.enum(["app_mention", "message"]),
  subtype: z.string().optional(),
  bot_id: z.string().optional(),
  user: SlackId.optional(),
  /** The user's workspace, for channels that several workspaces share. */
  user_team: SlackId.optional(),
  text: z.string().default(""),
  ts: Ts,
  thread_ts: Ts.optional(),
  channel: SlackId,
  channel_type: z.string().optional(),
});

export const Delivery = z.discriminatedUnion("type", [
  z.object({ type: z.literal("url_verification"), challenge: z.string() }),
  z.object({
    type: z.literal("event_callback"),
    team_id: SlackId,
    event_id: z.string().min(1).max(64),
    event: z.union([Message, z.object({ type: z.string() })]),
    authorizations: z.array(z.object({ user_id: z.string(), is_bot: z.boolean() })).default([]),
  }),
]);
export type EventDelivery = Extract<z.infer<typeof Delivery>, { type: "event_callback" }>;

export const Press = z.object({
  type: z.literal("block_actions"),
  team: z.object({ id: SlackId }),
  user: z.object({ id: SlackId }),
  channel: z.object({ id: SlackId }),
  message: z.object({
    ts: Ts,
    thread_ts: Ts.optional(),
    text: z.string().default(""),
    blocks: z.array(z.looseObject({ type: z.string() })).default([]),
  }),
  actions: z.array(z.object({ action_id: z.string(), value: z.string().optional() })).min(1),
});
export type Press = z.infer<typeof Press>;

/** A message from a person to the agent. */
export interface Said {
  readonly event_id: string;
  readonly team: string;
  readonly channel: string;
  readonly user: string;
  /** The thread in Slack. A message outside a thread starts one. */
  readonly thread_ts: string;
  readonly text: string;
}

/** Returns the message, or the reason why a delivery is not a message for the agent. */
export function saidIn({ event_id, team_id, event, authorizations }: EventDelivery): Said | string {
  const message = Message.safeParse(event).data;
  if (!message) return "no message";
  const { type, subtype, bot_id, user, user_team = team_id, channel, ts, thread_ts = ts } = message;
  // Without this check, the app would answer its own messages, and another bot could keep it busy.
  if (bot_id !== undefined || user === undefined) return "a message from a bot";
  if (authorizations.some((each) => each.is_bot && each.user_id === user)) return "a message of the app";
  if (subtype !== undefined) return `a message of the subtype ${subtype}`;
  // In channels, a message that mentions the app also arrives as `app_mention`.
  if (type === "message" && message.channel_type !== "im") return "a message in a channel";
  if (user_team !== team_id) return "a person of another workspace";
  const text = plainText(message.text);
  return text === "" ? "an empty message" : { event_id, team: team_id, channel, user, thread_ts, text };
}

/** Removes the mention at the beginning, and Slack's escaping. */
const plainText = (text: string) =>
  text
    .replace(/^\s*<@[A-Z0-9]+(?:\|[^>]*)?>/, "")
    .replaceAll(/<(https?:[^|>]+|mailto:[^|>]+)(?:\|[^>]*)?>/g, "$1")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&")
    .trim();
