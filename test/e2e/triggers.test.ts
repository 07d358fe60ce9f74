// Addresses that other services call: which deliveries start a run, once, and what their senders and owners learn.

import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { omitUndefined } from "../../src/lib/omit-undefined.ts";
import { newApiKey } from "../../src/server/auth/api-keys.ts";
import {
  deliver,
  fromGithub,
  fromSlack,
  fromStripe,
  githubIssue,
  type SentDelivery,
  slackMention,
  stripePayment,
} from "../support/deliveries.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { asUser, BEHIND_GATEWAY, clientsAt } from "../support/gateway.ts";
import { requestsTo } from "../support/native.ts";
import { type ServerOptions, startServer } from "../support/server.ts";

const SECRET = "a secret of 16 characters or more";
async function served(options: ServerOptions = {}) {
  const { url } = await startServer({
    ...options,
    config: { ...BEHIND_GATEWAY, ...options.config },
  });
  const as = clientsAt(url, "read,run,admin");
  return { url, as, ada: as("ada"), to: (path: string, sent: SentDelivery) => deliver(url + path, sent) };
}

type Spec = Parameters<ReturnType<typeof createClient>["triggers"]["put"]>[1];
const GITHUB: Spec = {
  agent: "assistant",
  verify: { scheme: "github" },
  secret: SECRET,
  input: "Issue {{body.issue.number}}: {{body.issue.title}}",
  thread: "{{body.issue.id}}",
  filter: { "body.action": ["opened"], "headers.x-github-event": ["issues"] },
  metadata: { team: "web" },
};

const BY_TOKEN = { verify: { scheme: "token" }, secret: SECRET } as const;

/** What the first message of a thread says, once it is there. */
const said = (client: ReturnType<typeof createClient>, thread = "") =>
  expect.poll(async () => (await client.threads.messages(thread)).items[0]?.content);

const answerOf = async (response: Promise<Response>) => {
  const answer = await response;
  const { thread_id, run_id, ignored } = (await answer.json()) as Record<string, string>;
  return { status: answer.status, ...omitUndefined({ thread_id, run_id, ignored }) };
};

test("an issue on GitHub starts a run once, however often it is delivered, and its user can see it", async () => {
  const { ada, to } = await served();
  const { url } = await ada.triggers.put("issues", GITHUB);
  expect(url).toMatch(/^\/hooks\/[0-9A-Za-z]{22}$/);

  const first = await answerOf(to(url, fromGithub(SECRET, githubIssue())));
  expect(first).toMatchObject({ status: 202, thread_id: expect.any(String), run_id: expect.any(String) });
  const again = await answerOf(to(url, fromGithub(SECRET, githubIssue())));
  expect(again).toMatchObject({ status: 202, run_id: first.run_id, thread_id: first.thread_id });

  // GitHub signs no id: a person who has seen a delivery starts nothing with it under another one.
  const replayed = await answerOf(to(url, fromGithub(SECRET, githubIssue(), { id: "another" })));
  expect(replayed).toEqual(again);

  const { thread_id = "", run_id = "" } = first;
  await expect.poll(async () => (await ada.runs.get(thread_id, run_id)).status).toBe("success");
  expect(await ada.runs.get(thread_id, run_id)).toMatchObject({
    metadata: { team: "web", trigger: "issues" },
  });
  const { items } = await ada.threads.messages(thread_id);
  expect(items[0]).toMatchObject({ role: "user", content: "Issue 1: Spelling error in the README file" });
  expect((await ada.runs.of(thread_id)).items).toHaveLength(1);

  const ping = fromGithub(SECRET, { zen: "Keep it logically awesome." }, { id: "p", event: "ping" });
  expect(await answerOf(to(url, ping))).toMatchObject({ status: 202, ignored: "ping of GitHub" });
  const closed = fromGithub(SECRET, githubIssue("closed"), { id: "c" });
  expect(await answerOf(to(url, closed))).toMatchObject({ status: 202, ignored: "filter of body.action" });

  const deliveries = async () => (await ada.triggers.get("issues")).deliveries;
  await expect.poll(async () => (await deliveries()).length).toBe(5);
  const id = "72d3162e-cc78-11e3-81ab-4c9367dc0958";
  expect(await deliveries()).toMatchObject([
    { id: "c", outcome: "ignored", reason: "filter of body.action" },
    { id: "p", outcome: "ignored", reason: "ping of GitHub" },
    { id: "another", outcome: "repeated", run_id },
    { id, outcome: "repeated", run_id },
    { id, outcome: "started", run_id, thread_id },
  ]);
  expect(JSON.stringify(await deliveries())).not.toContain("Spelling");
});

test("an invalid delivery is refused without details about the trigger", async () => {
  const { ada, to } = await served();
  const { url } = await ada.triggers.put("issues", GITHUB);
  const good = fromGithub(SECRET, githubIssue());
  const refusals = [
    fromGithub("another secret of 16 characters", githubIssue()),
    { ...good, body: `${good.body} ` },
    { ...good, headers: { "content-type": "application/json" } },
  ];
  const texts = new Set<string>();
  for (const sent of refusals) {
    const response = await to(url, sent);
    expect(response.status).toBe(401);
    texts.add((await response.text()).replace(/req_\w+/, ""));
  }
  expect(texts.size).toBe(1);
  for (const secret of ["acme", "ada", "assistant", "issues", SECRET])
    expect([...texts][0]).not.toContain(secret);

  const missing = await to("/hooks/0000000000000000000000", good);
  expect(missing.status).toBe(404);
  await ada.triggers.put("issues", { ...GITHUB, paused: true });
  const paused = await to(url, good);
  expect(paused.status).toBe(404);
  const plain = async (response: Response) => (await response.text()).replace(/req_\w+|\/hooks\/\w+/g, "");
  expect(await plain(paused)).toBe(await plain(missing));
  for (const sent of refusals) expect((await to(url, sent)).status).toBe(404);
  await ada.triggers.put("issues", GITHUB);
  expect((await to(url, good)).status).toBe(202);
});

test("Slack gets its challenge back once it has signed it, and a mention starts a run", async () => {
  const { ada, to } = await served();
  const spec: Spec = {
    agent: "assistant",
    verify: { scheme: "slack" },
    input: "{{body.event.text}}{{body.actions.0.value}}",
    thread: "{{body.team_id}}:{{body.event.channel}}:{{body.event.ts}}",
  };
  const made = await ada.triggers.create(spec);
  expect(made).toMatchObject({ id: expect.stringMatching(/^trg_/), has_secret: false });
  expect(made.secret).toBeUndefined();
  const { id, url } = made;
  const challenge = { type: "url_verification", challenge: "3eZbrw1aBm2rZgRNFdxV2595E9CY", token: "x" };
  expect((await to(url, fromSlack(SECRET, challenge))).status).toBe(401);
  // Slack's own secret: the server generates none.
  await expect(ada.triggers.rotate(id)).rejects.toMatchObject({ status: 400 });
  await ada.triggers.rotate(id, { secret: SECRET });
  expect(await (await to(url, fromSlack(SECRET, challenge))).json()).toEqual({
    challenge: challenge.challenge,
  });
  expect((await to(url, fromSlack("not the secret of the app", challenge))).status).toBe(401);

  const mention = fromSlack(SECRET, slackMention());
  const started = await answerOf(to(url, mention));
  expect(started).toMatchObject({ status: 202, run_id: expect.any(String) });
  // As Slack sends it again: a new time, the same event.
  const repeated = fromSlack(SECRET, slackMention(), Date.now() + 1000);
  expect(
    await answerOf(to(url, { ...repeated, headers: { ...repeated.headers, "x-slack-retry-num": "1" } })),
  ).toMatchObject({
    run_id: started.run_id,
  });
  expect((await to(url, fromSlack(SECRET, slackMention(), Date.now() - 301_000))).status).toBe(401);
  const payload = { type: "block_actions", team: { id: "T1" }, actions: [{ value: "Approve" }] };
  const clicked = fromSlack(SECRET, new URLSearchParams({ payload: JSON.stringify(payload) }).toString());
  await said(ada, (await answerOf(to(url, clicked))).thread_id).toBe("Approve");
});

test("Stripe and senders of Standard Webhooks are verified by their signatures", async () => {
  const { ada, to } = await served();
  const spec = { agent: "assistant", input: "{{body.type}} {{delivery.id}}" } as const;
  const stripe = await ada.triggers.put("stripe", { ...spec, verify: { scheme: "stripe" }, secret: SECRET });
  const { thread_id } = await answerOf(to(stripe.url, fromStripe(SECRET, stripePayment())));
  await said(ada, thread_id).toBe("payment_intent.payment_failed evt_1NG8Du2eZvKYlo2CUI79vXWy");

  const standard = await ada.triggers.put("standard", { ...spec, verify: { scheme: "standard-webhooks" } });
  const body = '{"type":"invoice.paid"}';
  const at = new Date();
  const headers = {
    "webhook-id": "msg_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": new Webhook(standard.secret ?? "").sign("msg_1", at, body),
  };
  expect((await to(standard.url, { headers, body })).status).toBe(202);
  expect((await to(standard.url, { headers, body: '{"type":"invoice.lost"}' })).status).toBe(401);
});

describe("the secret", () => {
  test("is returned once, if the server generates it", async () => {
    const { ada } = await served();
    const spec: Spec = { agent: "assistant", verify: { scheme: "token" }, input: "{{body}}" };
    const { secret = "", ...made } = await ada.triggers.put("script", spec);
    expect(secret).toMatch(/^[\w-]{43}$/);
    const shown = [
      await ada.triggers.list(),
      await ada.triggers.get("script"),
      await ada.triggers.put("script", spec),
    ];
    const exported = await (await ada.admin.exportUser({ tenant: "acme", user: "ada" })).text();
    expect(exported).toContain(`"type":"trigger"`);
    expect(JSON.stringify([shown, exported])).not.toContain(secret);
    expect(shown[2]).toMatchObject({ url: made.url });
  });

  test("and the previous one are both valid after a rotation, until the old one expires", async () => {
    const { ada, to } = await served();
    const { url } = await ada.triggers.put("issues", GITHUB);
    const { secret = "", old_secret_until } = await ada.triggers.rotate("issues");
    expect(Date.parse(old_secret_until ?? "")).toBeGreaterThan(Date.now() + 86_000_000);
    const statuses = async (...secrets: string[]) => {
      const all = secrets.map(async (each) => (await to(url, fromGithub(each, githubIssue()))).status);
      return Promise.all(all);
    };
    expect(await statuses(secret, SECRET)).toEqual([202, 202]);
    const { secret: _, ...spec } = GITHUB;
    await ada.triggers.put("issues", spec);
    expect(await statuses(secret, SECRET)).toEqual([202, 202]);
    const { secret: last = "" } = await ada.triggers.rotate("issues", { keep_old_for: 0 });
    expect(await statuses(last, secret, SECRET)).toEqual([202, 401, 401]);
    await ada.triggers.rotate("issues");
    await ada.triggers.put("issues", GITHUB);
    expect(await statuses(SECRET, last)).toEqual([202, 401]);
  });

  test("is no longer valid under another scheme after a rotation", async () => {
    const { ada } = await served();
    await ada.triggers.put("issues", GITHUB);
    const { old_secret_until } = await ada.triggers.rotate("issues");
    expect(old_secret_until).toBeDefined();
    const { secret: _, ...spec } = GITHUB;
    const verify = { scheme: "hmac", header: "x-signature" } as const;
    const changed = await ada.triggers.put("issues", { ...spec, verify });
    expect(changed).not.toHaveProperty("old_secret_until");
  });
});

test("testing a trigger shows the run that a delivery would start, and starts none", async () => {
  const { ada } = await served();
  await ada.triggers.put("issues", { ...GITHUB, paused: true });
  const headers = { "X-GitHub-Event": "issues", "X-GitHub-Delivery": "guid" };
  const planned = await ada.triggers.test("issues", { headers, body: githubIssue() });
  expect(planned).toEqual({
    agent: "assistant",
    input: "Issue 1: Spelling error in the README file",
    thread_id: expect.stringMatching(/^hook_/),
    delivery_id: expect.stringMatching(/^[\w-]{43}$/),
    metadata: { team: "web", trigger: "issues" },
  });
  expect(await ada.triggers.test("issues", { headers, body: githubIssue("closed") })).toEqual({
    ignored: "filter of body.action",
    delivery_id: expect.any(String),
  });
  expect((await ada.threads.list()).items).toEqual([]);
});

test("many simultaneous copies of a delivery start one run", async () => {
  const { ada, to } = await served();
  const { url } = await ada.triggers.put("issues", GITHUB);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => answerOf(to(url, fromGithub(SECRET, githubIssue())))),
  );
  expect(new Set(answers.map(({ run_id }) => run_id)).size).toBe(1);
  expect((await ada.runs.list()).items).toHaveLength(1);
});

test("a delivery is remembered for a day, even if its thread was deleted", async () => {
  const { ada, to } = await served();
  const { url } = await ada.triggers.put("issues", GITHUB);
  const { thread_id = "", run_id } = await answerOf(to(url, fromGithub(SECRET, githubIssue())));
  await expect.poll(async () => (await ada.threads.get(thread_id)).status).toBe("idle");
  await ada.threads.delete(thread_id);
  expect(await answerOf(to(url, fromGithub(SECRET, githubIssue())))).toMatchObject({ run_id });
  expect((await ada.threads.list()).items).toEqual([]);
});

test("the owner's quotas apply, and the sender learns only when to retry", async () => {
  const { ada, to } = await served({
    config: { quotas: { user: { requests_per_minute: 4 } } },
  });
  const { url } = await ada.triggers.put("issues", GITHUB);
  const statuses: number[] = [];
  let last: Response | undefined;
  for (let at = 0; at < 4; at++) {
    last = await to(url, fromGithub(SECRET, githubIssue("opened", at), { id: `d${at}` }));
    statuses.push(last.status);
  }
  expect(statuses).toEqual([202, 202, 202, 429]);
  expect(last?.headers.get("retry-after")).not.toBeNull();
  expect(await last?.json()).toMatchObject({
    code: "limit_exceeded",
    detail: "The delivery did not start a run. Send it again later.",
    details: { retry_after_ms: expect.any(Number) },
  });
});

test("a trigger accepts a limited number of requests per minute, signed or not", async () => {
  const { ada, to } = await served({ config: { limits: { trigger_requests: 3 } } });
  const { url } = await ada.triggers.put("issues", GITHUB);
  const { url: other } = await ada.triggers.put("others", GITHUB);
  const forged = fromGithub("another secret of 16 characters", githubIssue());
  for (const status of [401, 401, 401, 429]) expect((await to(url, forged)).status).toBe(status);
  expect((await to(other, fromGithub(SECRET, githubIssue()))).status).toBe(202);
});

test("hostile bodies start nothing and break nothing", async () => {
  // Deliveries have a limit of their own.
  const { ada, to } = await served({ config: { limits: { body_bytes: 4 * 1024 * 1024 } } });
  const { url } = await ada.triggers.put("issues", {
    ...GITHUB,
    filter: {},
    input: "<{{body.issue.title}}>",
  });
  const { createHmac } = await import("node:crypto");
  const sent = (body: string, type = "application/json", headers: Record<string, string> = {}) => ({
    body,
    headers: {
      "content-type": type,
      "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
      ...headers,
    },
  });
  const status = async (...args: Parameters<typeof sent>) => (await to(url, sent(...args))).status;
  expect(await status("{")).toBe(400);
  const delivery = async () => (await ada.triggers.get("issues")).deliveries[0];
  await expect.poll(delivery).toMatchObject({ outcome: "failed", reason: expect.stringContaining("JSON") });
  expect(await status('{"__proto__": {"issue": {"title": "polluted"}}}')).toBe(400);
  expect(await status(`${"[".repeat(100)}${"]".repeat(100)}`)).toBe(400);
  expect(await status(`[${"1,".repeat(30_000)}1]`)).toBe(413);
  expect(await status(JSON.stringify({ a: "x".repeat(1024 * 1024) }))).toBe(413);
  expect(await status("{}", "application/json", { "content-encoding": "gzip" })).toBe(415);
  expect(await status("payload=%7B", "application/x-www-form-urlencoded")).toBe(400);
  for (const body of ["null", "1", '"text"', "[]", "", "{}"]) expect(await status(body)).toBe(202);
  const { items } = await ada.runs.list();
  for (const { thread_id } of items) await said(ada, thread_id).toBe("<>");
});

test("triggers belong to their user, have a version, and are limited in number", async () => {
  const { url: base, as, ada, to } = await served({ config: { limits: { triggers: 2 } } });
  const { url } = await ada.triggers.put("issues", GITHUB);
  for (const other of [as("bob"), as("ada", "other")]) {
    await expect(other.triggers.get("issues")).rejects.toMatchObject({ status: 404 });
    await expect(other.triggers.delete("issues")).rejects.toMatchObject({ status: 404 });
    expect((await other.triggers.list()).items).toEqual([]);
    expect((await other.triggers.put("issues", GITHUB)).url).not.toBe(url);
  }
  await ada.triggers.create(GITHUB);
  await expect(ada.triggers.create(GITHUB)).rejects.toMatchObject({ status: 429, code: "limit_exceeded" });
  expect((await ada.triggers.list({ limit: 1 })).next_cursor).toBeTypeOf("string");

  const send = requestsTo(base, asUser("ada"));
  const write = (method: string, version: string) =>
    send(method, "/triggers/issues", method === "PUT" ? GITHUB : undefined, { "if-match": version });
  const etag = (await send("GET", "/triggers/issues")).headers.get("etag") ?? "";
  const put = await write("PUT", etag);
  expect(put.status).toBe(200);
  expect((await write("PUT", etag)).status).toBe(412);
  expect((await write("DELETE", etag)).status).toBe(412);
  expect((await write("DELETE", put.headers.get("etag") ?? "")).status).toBe(204);
  expect((await to(url, fromGithub(SECRET, githubIssue()))).status).toBe(404);
});

test("settings that cannot work are refused with the reason", async () => {
  const { ada } = await served();
  const reason = (change: object) =>
    ada.triggers.put("issues", { ...GITHUB, ...change }).then(
      () => "taken",
      ({ status, message }) => `${status} ${message}`,
    );
  expect(await reason({ input: "{{body.a" })).toMatch(
    /^400 Invalid body: input: `{{` and `}}` must enclose a path/,
  );
  expect(await reason({ thread: "{{env.KEY}}" })).toContain("thread: `env.KEY` must be a path");
  expect(await reason({ filter: { action: ["opened"] } })).toContain("`action` must be a path");
  expect(await reason({ agent: "nameless" })).toContain("There is no agent `nameless`");
  expect(await reason({ secret: "short" })).toContain("secret: must be 16 to 256 characters");
  expect(await reason({ verify: { scheme: "standard-webhooks" } })).toContain("must be `whsec_`");
  expect(await reason({ verify: { scheme: "hmac", header: "a b" } })).toContain("must be a header name");
  const many = Object.fromEntries(Array.from({ length: 32 }, (_, at) => [`k${at}`, at]));
  expect(await reason({ metadata: many })).toContain("must have at most 31 keys");
});

test("a trigger is paused, with the reason, if its key is revoked", async () => {
  const root = newApiKey().key;
  const agents = (name: string) => `agents: { ${name}: { model: 'scripted:test' } }`;
  const options = {
    config: { auth: { scheme: "api_key", bootstrap_key: root }, store: "sqlite" },
    agents: agents("helper"),
  };
  const server = await startServer(options);
  const clientOf = (key: string) =>
    createClient({ baseUrl: server.url, headers: { authorization: `Bearer ${key}` } });
  const { admin } = clientOf(root);
  const { key, id } = await admin.createKey({ user: "ada" });
  const { key: second } = await admin.createKey({ user: "ada" });
  const spec = { ...GITHUB, agent: "helper" };
  const { url } = await clientOf(key).triggers.put("issues", spec);
  const send = async (at: string) =>
    (await deliver(server.url + url, fromGithub(SECRET, githubIssue(), { id: at }))).status;
  expect(await send("first")).toBe(202);
  await admin.revokeKey(id);
  let at = 0;
  await expect.poll(() => send(`d${at++}`)).toBe(404);
  const ada = clientOf(second);
  expect(await ada.triggers.get("issues")).toMatchObject({
    paused: true,
    paused_reason: {
      code: "credentials_revoked",
      message: `The API key \`${id}\` was revoked.`,
    },
  });

  const { paused_reason } = await ada.triggers.put("issues", spec);
  expect(paused_reason).toBeUndefined();
  expect(await send("last")).toBe(202);
});

test("with on_revoked: cancel, the runs of triggers and schedules end with the key that created these", async () => {
  const root = newApiKey().key;
  const { url: baseUrl } = await startServer({
    config: { auth: { scheme: "api_key", bootstrap_key: root, on_revoked: "cancel" }, store: "sqlite" },
    ...{ agents: WITH_GATE, tools: [gate().tool], script: () => gated[0] },
  });
  const clientOf = (key: string) => createClient({ baseUrl, headers: { authorization: `Bearer ${key}` } });
  const { admin } = clientOf(root);
  const [own, other] = [await admin.createKey({ user: "ada" }), await admin.createKey({ user: "ada" })];
  const { triggers, schedules } = clientOf(own.key);
  const { url } = await triggers.put("issues", { agent: "assistant", ...BY_TOKEN, input: "go" });
  const headers = { authorization: `Bearer ${SECRET}` };
  expect((await fetch(baseUrl + url, { method: "POST", headers })).status).toBe(202);
  await schedules.put("daily", { cron: "0 9 * * *", input: "go" });
  await schedules.run("daily");
  const statuses = async () => (await clientOf(other.key).runs.list()).items.map(({ status }) => status);
  await expect.poll(statuses).toEqual(["running", "running"]);
  await admin.revokeKey(own.id);
  await expect.poll(statuses).toEqual(["cancelled", "cancelled"]);
});

test("a trigger is deleted with its user", async () => {
  const { ada, to } = await served();
  const { url } = await ada.triggers.put("issues", GITHUB);
  expect((await to(url, fromGithub(SECRET, githubIssue()))).status).toBe(202);
  await expect.poll(async () => (await ada.triggers.get("issues")).deliveries.length).toBe(1);
  await ada.admin.deleteUser({ tenant: "acme", user: "ada" });
  expect((await to(url, fromGithub(SECRET, githubIssue()))).status).toBe(404);
  expect((await ada.triggers.list()).items).toEqual([]);
  await ada.triggers.put("issues", GITHUB);
  expect((await ada.triggers.get("issues")).deliveries).toEqual([]);
});
