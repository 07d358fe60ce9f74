// Deliveries as GitHub, Slack and Stripe sign and send them.

import { createHmac } from "node:crypto";

export interface SentDelivery {
  readonly headers: Record<string, string>;
  readonly body: string;
}

const JSON_TYPE = { "content-type": "application/json" };
const FORM_TYPE = { "content-type": "application/x-www-form-urlencoded" };
const hmac = (secret: string, text: string) => createHmac("sha256", secret).update(text).digest("hex");
const seconds = (ms = Date.now()) => Math.floor(ms / 1000);

/** As in https://docs.github.com/en/webhooks/webhook-events-and-payloads#issues, shortened. */
export const githubIssue = (
  action = "opened",
  id = 73464126,
  title = "Spelling error in the README file",
) => ({
  action,
  issue: {
    url: "https://api.github.com/repos/Codertocat/Hello-World/issues/1",
    id,
    number: 1,
    title,
    user: { login: "Codertocat", id: 21031067, type: "User", site_admin: false },
    labels: [{ id: 1362934389, name: "bug", color: "d73a4a", default: true }],
    state: "open",
    body: 'It looks like you accidentally spelled "commit" with two "t"s.',
  },
  repository: { id: 186853002, full_name: "Codertocat/Hello-World", private: false },
  sender: { login: "Codertocat", id: 21031067 },
});

export function fromGithub(
  secret: string,
  payload: object,
  { id = "72d3162e-cc78-11e3-81ab-4c9367dc0958", event = "issues" } = {},
): SentDelivery {
  const body = JSON.stringify(payload);
  return {
    body,
    headers: {
      ...JSON_TYPE,
      "user-agent": "GitHub-Hookshot/044aadd",
      "x-github-delivery": id,
      "x-github-event": event,
      "x-github-hook-id": "292430182",
      "x-hub-signature": `sha1=${createHmac("sha1", secret).update(body).digest("hex")}`,
      "x-hub-signature-256": `sha256=${hmac(secret, body)}`,
    },
  };
}

/** As in https://docs.slack.dev/apis/events-api: an event that mentions an app. */
export const slackMention = (
  text = "<@U0LAN0Z89> is it everything a river should be?",
  event_id = "Ev9UQ52YNA",
) => ({
  token: "ZZZZZZWSxiZZZ2yIvs3peJ",
  team_id: "T061EG9R6",
  api_app_id: "A0MDYCDME",
  event: {
    type: "app_mention",
    user: "W021FGA1Z",
    text,
    ts: "1515449522.000016",
    channel: "C0LAN2Q65",
    event_ts: "1515449522000016",
  },
  type: "event_callback",
  event_id,
  event_time: 1515449522000016,
  authed_users: ["U0LAN0Z89"],
});

export function fromSlack(secret: string, payload: object | string, at = Date.now()): SentDelivery {
  const isForm = typeof payload === "string";
  const body = isForm ? payload : JSON.stringify(payload);
  const time = String(seconds(at));
  const signature = `v0=${hmac(secret, `v0:${time}:${body}`)}`;
  return {
    body,
    headers: {
      ...(isForm ? FORM_TYPE : JSON_TYPE),
      "x-slack-request-timestamp": time,
      "x-slack-signature": signature,
    },
  };
}

/** As in https://docs.stripe.com/api/events/object, shortened. */
export const stripePayment = (id = "evt_1NG8Du2eZvKYlo2CUI79vXWy") => ({
  id,
  object: "event",
  api_version: "2019-02-19",
  created: 1686089970,
  data: { object: { id: "pi_1", object: "payment_intent", amount: 1099, currency: "usd" } },
  livemode: false,
  pending_webhooks: 0,
  request: { id: null, idempotency_key: null },
  type: "payment_intent.payment_failed",
});

export function fromStripe(secret: string, payload: object, at = Date.now()): SentDelivery {
  const body = JSON.stringify(payload, null, 2);
  const time = seconds(at);
  const signature = hmac(secret, `${time}.${body}`);
  return {
    body,
    headers: { ...JSON_TYPE, "stripe-signature": `t=${time},v1=${signature},v0=${"0".repeat(64)}` },
  };
}

export const deliver = (url: string, { headers, body }: SentDelivery) =>
  fetch(url, { method: "POST", headers, body });
