import { expect, test } from "vitest";
import { keyOf, planOf } from "../../../src/engine/triggers/plan.ts";
import { requestRate } from "../../../src/engine/triggers/rate.ts";
import { shownOf } from "../../../src/engine/triggers/store.ts";
import { type Delivery, TriggerSpec } from "../../../src/engine/triggers/trigger.ts";

const trigger = (spec: object) => ({
  id: "issues",
  ...TriggerSpec.parse({ agent: "a", verify: { scheme: "github" }, input: "{{body.text}}", ...spec }),
});
const delivery = (headers: Record<string, string> = {}, body: unknown = { text: "hi" }) => ({
  headers,
  raw: Buffer.from(JSON.stringify(body)),
});
const plan = (spec: object, headers: Record<string, string>, body: object) =>
  planOf(trigger(spec), delivery(headers, body), body);

test("a repeated delivery is planned as the same run on the same thread", () => {
  const headers = { "x-github-delivery": "guid" };
  const first = plan({}, headers, { text: "hi" });
  expect(plan({}, headers, { text: "hi" })).toEqual(first);
  expect(first).toMatchObject({
    agent: "a",
    input: "hi",
    sent_id: "guid",
    metadata: { trigger: "issues" },
  });
  expect(plan({}, headers, { text: "ho" })).not.toMatchObject({ delivery_id: first.delivery_id });
});

test.each([{ scheme: "github" }, { scheme: "hmac", header: "x-signature" }])(
  "if $scheme signs only the body, the body and no header makes a delivery the same",
  (verify) => {
    const sent = (id: string, text = "hi", spec = {}) => {
      const headers = { "x-github-delivery": id, "idempotency-key": id };
      return plan({ verify, ...spec }, headers, { text });
    };
    const { sent_id: _, ...first } = sent("guid");
    expect(sent("another")).toEqual({ ...first, sent_id: "another" });
    expect(sent("guid", "ho")).not.toMatchObject({ delivery_id: first.delivery_id });
    // A user may trust a header.
    const trusting = { delivery_id: "{{headers.idempotency-key}}" };
    expect(sent("another", "hi", trusting).delivery_id).toBe("another");
  },
);

test("a delivery with a token, or with a signed id, has its sender's id", () => {
  const of = (verify: object, headers: Record<string, string>, body: object = {}) =>
    plan({ verify }, headers, body).delivery_id;
  expect(of({ scheme: "token" }, { "idempotency-key": "k1" })).toBe("k1");
  expect(of({ scheme: "standard-webhooks" }, { "webhook-id": "msg_1" })).toBe("msg_1");
  expect(of({ scheme: "slack" }, {}, { event_id: "Ev1" })).toBe("Ev1");
  expect(of({ scheme: "stripe" }, {}, { id: "evt_1" })).toBe("evt_1");
});

test("without an id, deliveries with the same body count as one", () => {
  const idOf = (text: string) => plan({ verify: { scheme: "token" } }, {}, { text }).delivery_id;
  expect(idOf("hi")).toBe(idOf("hi"));
  expect(idOf("hi")).not.toBe(idOf("ho"));
});

test("a template can define which deliveries are the same", () => {
  const spec = { verify: { scheme: "token" }, delivery_id: "{{headers.x-shopify-webhook-id}}" };
  expect(plan(spec, { "x-shopify-webhook-id": "w1" }, { text: "hi" }).delivery_id).toBe("w1");
  const long = "w".repeat(1000);
  expect(plan(spec, { "x-shopify-webhook-id": long }, { text: "hi" }).delivery_id.length).toBeLessThan(129);
  expect(plan(spec, {}, { text: "hi" }).delivery_id).toMatch(/^[\w-]{43}$/);
});

test("deliveries with the same text share a thread, whose id no text can choose freely", () => {
  const threadOf = (id: unknown, of = "issues", text = "1") => {
    const body = { text, issue: { id } };
    const spec = { ...trigger({ thread: "{{body.issue.id}}" }), id: of };
    const planned = planOf(spec, delivery({}, body), body);
    return "thread_id" in planned ? planned.thread_id : undefined;
  };
  expect(threadOf(7)).toBe(threadOf(7, "issues", "2"));
  expect(threadOf(7)).not.toBe(threadOf(8));
  expect(threadOf(7)).not.toBe(threadOf(7, "others"));
  expect(threadOf("th_of_the_user")).toMatch(/^hook_[\w-]{32}$/);
  // Without a text, a delivery has a thread of its own.
  expect(threadOf(undefined)).not.toBe(threadOf(undefined, "issues", "2"));
  expect(threadOf(undefined)).toBe(threadOf(undefined));
});

test("a filter allows deliveries that have one of its values at every path", () => {
  const filter = { "body.action": ["opened", "reopened"], "headers.x-github-event": ["issues"] };
  const ignoredBy = (action: unknown, event = "issues") => {
    const planned = plan({ filter }, { "x-github-event": event }, { text: "hi", action });
    return "ignored" in planned ? planned.ignored : undefined;
  };
  expect(ignoredBy("opened")).toBeUndefined();
  expect(ignoredBy("reopened")).toBeUndefined();
  expect(ignoredBy("closed")).toBe("filter of body.action");
  expect(ignoredBy(["opened"])).toBe("filter of body.action");
  expect(ignoredBy(undefined)).toBe("filter of body.action");
  expect(ignoredBy("opened", "push")).toBe("filter of headers.x-github-event");
});

test("GitHub's ping, Slack bots' messages and empty inputs start nothing", () => {
  expect(plan({}, { "x-github-event": "ping" }, { text: "hi" })).toMatchObject({ ignored: "ping of GitHub" });
  const slack = { verify: { scheme: "slack" } };
  const event = { event_id: "Ev1", text: "hi", event: { bot_id: "B1" } };
  expect(plan(slack, {}, event)).toMatchObject({ ignored: "message from a bot", delivery_id: "Ev1" });
  expect(plan({}, {}, { text: " " })).toMatchObject({ ignored: "the input is empty" });
});

test("metadata cannot name another trigger", () => {
  const planned = plan({ metadata: { trigger: "other", team: "web" } }, {}, { text: "hi" });
  expect(planned).toMatchObject({ metadata: { trigger: "issues", team: "web" } });
});

test("a run's key is short, however long the delivery's id is", () =>
  expect(keyOf("é".repeat(1000))).toMatch(/^delivery:[\w-]{43}$/));

test("a trigger allows requests up to its rate, then one by one", () => {
  let now = 0;
  const call = requestRate(60, () => now);
  for (let count = 0; count < 60; count++) expect(call()).toBe(0);
  expect(call()).toBe(1000);
  now = 400;
  expect(call()).toBe(600);
  now = 1000;
  expect([call(), call()]).toEqual([0, 1000]);
  now = 3_600_000;
  for (let count = 0; count < 60; count++) expect(call()).toBe(0);
  expect(call()).toBe(1000);
});

test("refused deliveries do not push out all others", () => {
  const refused: Delivery[] = Array.from({ length: 100 }, () => ({ at: "", outcome: "refused" }));
  const started: Delivery[] = Array.from({ length: 30 }, (_, run) => ({ at: `${run}`, outcome: "started" }));
  const shown = shownOf([...refused, ...started]);
  expect(shown.map(({ outcome }) => outcome)).toEqual([
    ...Array(5).fill("refused"),
    ...Array(15).fill("started"),
  ]);
});
