// The signatures of senders, with the examples of their documentation.

import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { isVerified, readableHeaders, sentId, Verification } from "../../../src/engine/triggers/verify.ts";

const MINUTE = 60_000;

interface Example {
  readonly verify: object;
  readonly secret: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  /** When it was signed, where the scheme says so. */
  readonly at?: number;
}

const signed = (secret: string, text: string) => createHmac("sha256", secret).update(text).digest("hex");

const SLACK_BODY =
  "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";

const EXAMPLES: Readonly<Record<string, Example>> = {
  // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
  github: {
    verify: { scheme: "github" },
    secret: "It's a Secret to Everybody",
    headers: {
      "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    },
    body: "Hello, World!",
  },
  // https://docs.slack.dev/authentication/verifying-requests-from-slack
  slack: {
    verify: { scheme: "slack" },
    secret: "8f742231b10e8888abcd99yyyzzz85a5",
    headers: {
      "x-slack-request-timestamp": "1531420618",
      "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    },
    body: SLACK_BODY,
    at: 1_531_420_618_000,
  },
  // https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
  "standard-webhooks": {
    verify: { scheme: "standard-webhooks" },
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    headers: {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature":
        "v1,bm9ldHUjKzFob2VudXRob2VodWUzMjRvdWVvdW9ldQo= v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    body: '{"test": 2432232314}',
    at: 1_614_265_330_000,
  },
  // https://docs.stripe.com/webhooks#verify-manually
  stripe: {
    verify: { scheme: "stripe" },
    secret: "whsec_test_secret_of_an_endpoint",
    headers: {
      "stripe-signature": `t=1492774577,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39,v1=${"0".repeat(64)},v1=${signed("whsec_test_secret_of_an_endpoint", '1492774577.{"id":"evt_1"}')}`,
    },
    body: '{"id":"evt_1"}',
    at: 1_492_774_577_000,
  },
  "hmac in hexadecimal, as Linear has it": {
    verify: { scheme: "hmac", header: "Linear-Signature" },
    secret: "a secret of Linear",
    headers: { "linear-signature": signed("a secret of Linear", "{}") },
    body: "{}",
  },
  "hmac in base64, as Shopify has it": {
    verify: { scheme: "hmac", header: "X-Shopify-Hmac-Sha256", encoding: "base64" },
    secret: "a secret of Shopify",
    headers: {
      "x-shopify-hmac-sha256": createHmac("sha256", "a secret of Shopify").update("{}").digest("base64"),
    },
    body: "{}",
  },
  "a token, as GitLab has it": {
    verify: { scheme: "token", header: "X-Gitlab-Token" },
    secret: "a token of GitLab",
    headers: { "x-gitlab-token": "a token of GitLab" },
    body: "{}",
  },
  "a bearer token": {
    verify: { scheme: "token" },
    secret: "a token of a script",
    headers: { authorization: "Bearer a token of a script" },
    body: "{}",
  },
};

const isGood = (
  { verify, secret, headers, body, at = 0 }: Example,
  change: { headers?: Record<string, string>; body?: string; secrets?: string[]; now?: number } = {},
) =>
  isVerified(
    Verification.parse(verify),
    change.secrets ?? [secret],
    { headers: { ...headers, ...change.headers }, raw: Buffer.from(change.body ?? body) },
    change.now ?? at,
  );

describe.each(Object.entries(EXAMPLES))("%s", (_, example) => {
  const credentials = Object.keys(example.headers).filter((name) => !/time|-id$/.test(name));

  test("a delivery from the sender is verified", () => expect(isGood(example)).toBe(true));
  test("one with either of two secrets is verified", () =>
    expect(isGood(example, { secrets: ["the one after that", example.secret] })).toBe(true));
  test("one without a secret on this side is not verified", () =>
    expect(isGood(example, { secrets: [] })).toBe(false));
  test("one with another secret is not verified", () =>
    expect(isGood(example, { secrets: ["the one after that"] })).toBe(false));
  test("one with another body is not verified, unless a token does not cover the body", () =>
    expect(isGood(example, { body: `${example.body} ` })).toBe(Object(example.verify).scheme === "token"));
  test("one with a shortened or missing signature is not verified", () => {
    for (const name of credentials) {
      expect(isGood(example, { headers: { [name]: example.headers[name]?.slice(0, -1) ?? "" } })).toBe(false);
      expect(isGood(example, { headers: { [name]: "" } })).toBe(false);
      const { [name]: _, ...others } = example.headers;
      expect(isGood({ ...example, headers: others })).toBe(false);
    }
  });
});

test.each(["slack", "stripe", "standard-webhooks"])(
  "a delivery from %s is verified for five minutes, but not before it was signed",
  (scheme) => {
    const example = EXAMPLES[scheme];
    if (example?.at === undefined) throw new Error("has no time");
    const { at } = example;
    expect(isGood(example, { now: at + 5 * MINUTE })).toBe(true);
    expect(isGood(example, { now: at + 5 * MINUTE + 1 })).toBe(false);
    expect(isGood(example, { now: at - 5 * MINUTE - 1 })).toBe(false);
  },
);

test("a signed time cannot be changed", () => {
  const { slack, stripe, "standard-webhooks": standard } = EXAMPLES;
  if (!slack || !stripe || !standard) throw new Error("has no example");
  expect(isGood(slack, { headers: { "x-slack-request-timestamp": "1531420619" } })).toBe(false);
  expect(isGood(standard, { headers: { "webhook-timestamp": "1614265331" } })).toBe(false);
  expect(isGood(standard, { headers: { "webhook-id": "msg_another" } })).toBe(false);
  const moved = stripe.headers["stripe-signature"]?.replace("t=1492774577", "t=1492774578") ?? "";
  expect(isGood(stripe, { headers: { "stripe-signature": moved } })).toBe(false);
});

test("templates cannot read credentials or signatures", () => {
  const headers = {
    ...{ authorization: "Bearer x", cookie: "a=b", "x-api-key": "sk", "x-own": "secret" },
    ...{ "x-hub-signature-256": "sha256=x", "x-github-event": "issues" },
  };
  const verify = Verification.parse({ scheme: "token", header: "X-Own" });
  expect(readableHeaders(verify, headers)).toEqual({ "x-github-event": "issues" });
});

test("a delivery has its sender's id", () => {
  const idOf = (verify: object, headers: Record<string, string>, body: unknown) =>
    sentId(Verification.parse(verify), headers, body);
  expect(idOf({ scheme: "github" }, { "x-github-delivery": "guid" }, { id: "no" })).toBe("guid");
  expect(idOf({ scheme: "slack" }, {}, { event_id: "Ev1" })).toBe("Ev1");
  expect(idOf({ scheme: "slack" }, {}, { event_id: { toString: "Ev1" } })).toBeUndefined();
  expect(idOf({ scheme: "stripe" }, {}, { id: "evt_1" })).toBe("evt_1");
  expect(idOf({ scheme: "stripe" }, {}, null)).toBeUndefined();
  expect(idOf({ scheme: "standard-webhooks" }, { "webhook-id": "msg_1" }, {})).toBe("msg_1");
  expect(idOf({ scheme: "token" }, { "idempotency-key": "k" }, {})).toBe("k");
  expect(idOf({ scheme: "token" }, {}, { id: "1" })).toBeUndefined();
});
