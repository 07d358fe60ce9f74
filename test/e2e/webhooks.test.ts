// Webhooks of users and tenants, from the request that makes one to what its receiver gets.

import { Webhook as Verifier } from "standardwebhooks";
import { expect, test } from "vitest";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { asUser, BEHIND_GATEWAY } from "../support/gateway.ts";
import { requestsTo } from "../support/native.ts";
import { type ServerOptions, startServer, temporaryFolder } from "../support/server.ts";
import { post } from "../support/sse.ts";
import { HELPED } from "../support/team.ts";
import { type Received, webhookInbox } from "../support/webhook-inbox.ts";

const AGENTS = `
agents:
  assistant: { model: scripted:test, tools: [ask_user] }
  other: { model: scripted:test }
`;

interface Shown {
  readonly id: string;
  readonly secret: string;
  readonly status: string;
  readonly error?: string;
  readonly paused: boolean;
  readonly items: readonly Shown[];
  readonly [about: string]: unknown;
}

/** A server with users of tenants, who may have webhooks on this machine. */
async function serve(options: ServerOptions = {}) {
  const { url, app } = await startServer({
    agents: AGENTS,
    script: ({ messages }) => {
      const text = JSON.stringify(messages.at(-1));
      if (text.includes("ask")) return { call: [{ tool: "ask_user", args: { question: "Which secret?" } }] };
      if (text.includes("fail")) return { fail: { code: "model_rejected" } };
      return { say: "a secret answer" };
    },
    ...options,
    config: {
      ...BEHIND_GATEWAY,
      http_tools: { allow: "127.0.0.1" },
      ...options.config,
    },
  });
  const as = (user: string, tenant = "acme", scopes = "read,run,admin") => {
    const headers = asUser(user, scopes, tenant);
    const send = requestsTo(url, headers);
    const ask = async (...request: Parameters<typeof send>) => {
      const { status, headers, body } = await send(...request);
      return { status, etag: headers.get("etag") ?? "", answer: body as Shown };
    };
    const run = async (thread: string, input: string, agent = "assistant") =>
      (await post(`${url}/threads/${thread}/runs`, { input, agent }, headers)).ended();
    return { ask, run };
  };
  return { url, app, as };
}

const typesIn = (received: readonly Received[]) => received.map(({ message }) => message.type);

test("a webhook receives the end of a run, with a signature, ids, status and usage but no contents", async () => {
  const inbox = await webhookInbox();
  const ada = (await serve()).as("ada");
  const made = await ada.ask("PUT", "/webhooks/mine", { url: inbox.url, on: ["run.ended", "run.failed"] });
  expect(made.status).toBe(201);
  expect(made.answer.secret).toMatch(/^whsec_/);
  await ada.run("t1", "tell me");
  await expect.poll(() => inbox.received.length).toBe(1);
  const [{ headers, body }] = inbox.received as [Received];
  expect(new Verifier(made.answer.secret).verify(body, headers as Record<string, string>)).toMatchObject({
    type: "run.ended",
    data: {
      ...{ tenant: "acme", user: "ada", thread_id: "t1", agent: "assistant" },
      run_id: expect.stringMatching(/^run_/),
      ...{
        status: "success",
        stop_reason: "end_turn",
        usage: expect.objectContaining({ input_tokens: expect.any(Number) }),
      },
    },
  });
  expect(body).not.toMatch(/secret|tell me/);
});

test("a webhook receives only the events, agents and users that it selects", async () => {
  const inbox = await webhookInbox();
  const server = await serve();
  const [ada, bob, stranger] = [server.as("ada"), server.as("bob"), server.as("ada", "other")];
  const spec = { url: inbox.url, agents: ["assistant"] };
  await ada.ask("PUT", "/webhooks/failures", { ...spec, on: ["run.failed", "interrupt.opened"] });
  for (const each of [bob, stranger]) await each.run("t1", "fail");
  await ada.run("t1", "fine");
  await ada.run("t2", "fail", "other");
  await ada.run("t3", "ask me");
  await ada.run("t4", "fail");
  await expect.poll(() => typesIn(inbox.received).sort()).toEqual(["interrupt.opened", "run.failed"]);
  const asked = inbox.received.find(({ message }) => message.type === "interrupt.opened");
  expect(asked?.message.data).toMatchObject({ thread_id: "t3", interrupts: [{ kind: "question" }] });
  expect(asked?.body).not.toContain("Which secret?");
  const failed = inbox.received.find(({ message }) => message.type === "run.failed");
  expect(failed?.message.data).toMatchObject({ thread_id: "t4", status: "error", code: expect.any(String) });
});

test("a tenant's webhook receives the runs of all its users, and of no other tenant's", async () => {
  const inbox = await webhookInbox();
  const server = await serve();
  await server.as("root").ask("PUT", "/admin/webhooks/all", { url: inbox.url, on: ["run.ended"] });
  await server.as("ada", "other").run("t1", "hello");
  for (const user of ["ada", "bob"]) await server.as(user).run("t1", "hello");
  await expect
    .poll(() => inbox.received.map(({ message }) => message.data.user).sort())
    .toEqual(["ada", "bob"]);
  const forbidden = await server.as("ada", "acme", "read,run").ask("GET", "/admin/webhooks/all");
  expect(forbidden.status).toBe(403);
  expect((await server.as("root", "other").ask("GET", "/admin/webhooks/all?tenant=acme")).status).toBe(404);
});

test("a failed delivery is sent again with the same id; a refused one can be resent manually", async () => {
  const inbox = await webhookInbox(500, 429, 204, 410);
  const ada = (await serve()).as("ada");
  await ada.ask("PUT", "/webhooks/mine", { url: inbox.url, on: ["run.ended"] });
  await ada.run("t1", "hello");
  await expect.poll(() => inbox.received.length).toBe(3);
  expect(new Set(inbox.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  await ada.run("t2", "hello");
  const failed = async () => (await ada.ask("GET", "/webhooks/mine/deliveries?status=failed")).answer.items;
  await expect
    .poll(failed)
    .toMatchObject([{ thread_id: "t2", attempts: 1, http_status: 410, error: "it answered 410" }]);
  const [dead] = await failed();
  expect((await ada.ask("POST", `/webhooks/mine/deliveries/${dead?.id}/send`)).answer).toMatchObject({
    status: "pending",
  });
  const delivered = async () =>
    (await ada.ask("GET", "/webhooks/mine/deliveries?status=delivered")).answer.items.map(
      (each) => each.thread_id,
    );
  await expect.poll(delivered).toEqual(["t2", "t1"]);
  expect(inbox.received.at(-1)?.headers["webhook-id"]).toBe(dead?.id);
  expect(inbox.received.at(-1)?.body).toBe(inbox.received.at(-2)?.body);

  const spec = { url: inbox.url, on: ["run.ended"] };
  await ada.ask("PUT", "/webhooks/mine", { ...spec, paused: true });
  const refused = await ada.ask("POST", `/webhooks/mine/deliveries/${dead?.id}/send`);
  expect([refused.status, refused.answer.detail]).toEqual([400, expect.stringContaining("is paused")]);
  // A webhook with the id of a deleted one has none of its deliveries.
  await ada.ask("DELETE", "/webhooks/mine");
  await ada.ask("PUT", "/webhooks/mine", spec);
  expect((await ada.ask("GET", "/webhooks/mine/deliveries")).answer.items).toEqual([]);
});

test("a webhook receives the end of a run, but not of its subagents' runs", async () => {
  const inbox = await webhookInbox();
  const ada = (await serve(HELPED)).as("ada");
  await ada.ask("PUT", "/webhooks/mine", { url: inbox.url, on: ["run.ended"] });
  await ada.run("t1", "hello");
  await expect.poll(() => inbox.received.map(({ message }) => message.data.thread_id)).toEqual(["t1"]);
});

test("a webhook receives the end of a run that is cancelled before it begins", async () => {
  const inbox = await webhookInbox();
  const { tool, entered } = gate();
  const ada = (await serve({ script: gated, agents: WITH_GATE, tools: [tool] })).as("ada");
  await ada.ask("PUT", "/webhooks/mine", { url: inbox.url, on: ["run.ended"] });
  const start = () =>
    ada.ask("POST", "/threads/t1/runs", { input: "hello", background: true, on_busy: "enqueue" });
  await start();
  await entered;
  const { id } = (await start()).answer;
  await ada.ask("POST", `/threads/t1/runs/${id}/cancel`);
  const ends = () => inbox.received.map(({ message }) => message.data);
  await expect.poll(ends).toMatchObject([{ run_id: id, status: "cancelled" }]);
});

test("with `ordered`, a thread's delivery waits for the previous one, and other threads do not", async () => {
  const inbox = await webhookInbox(500, 500);
  const ada = (await serve()).as("ada");
  const spec = { url: inbox.url, on: ["run.ended"], ordered: true };
  await ada.ask("PUT", "/webhooks/mine", spec);
  for (const input of ["one", "two", "three"]) await ada.run("t1", input);
  await ada.run("t2", "hello");
  const runs = (await ada.ask("GET", "/threads/t1/runs")).answer.items.map(({ id }) => id).reverse();
  const taken = () => {
    const ids = inbox.received
      .filter(({ message }) => message.data.thread_id === "t1")
      .map(({ message }) => message.data.run_id);
    return [...new Set(ids)];
  };
  await expect.poll(taken).toEqual(runs);
  await expect
    .poll(async () => (await ada.ask("GET", "/webhooks/mine/deliveries?status=pending")).answer.items)
    .toEqual([]);
  const first = inbox.received.filter(({ message }) => message.data.run_id === runs[0]);
  const before = inbox.received.findIndex(({ message }) => message.data.run_id === runs[1]);
  expect(inbox.received.indexOf(first.at(-1) as Received)).toBeLessThan(before);
});

test("after a rotation, both secrets sign, and only the response that creates a secret contains it", async () => {
  const inbox = await webhookInbox();
  const ada = (await serve()).as("ada");
  const spec = { url: inbox.url, on: ["run.ended"] };
  const { secret: old } = (await ada.ask("POST", "/webhooks", { ...spec, id: "mine" })).answer;
  const { secret } = (await ada.ask("POST", "/webhooks/mine/rotate")).answer;
  expect(secret).not.toBe(old);
  const again = await ada.ask("PUT", "/webhooks/mine", spec);
  expect(again.status).toBe(200);
  await ada.run("t1", "hello");
  await expect.poll(() => inbox.received.length).toBe(1);
  const [{ headers, body }] = inbox.received as [Received];
  for (const each of [old, secret]) new Verifier(each).verify(body, headers as Record<string, string>);
  const shown = [
    again.answer,
    (await ada.ask("GET", "/webhooks/mine")).answer,
    (await ada.ask("GET", "/webhooks")).answer,
  ];
  expect(shown[1]).toMatchObject({
    url: `http://${inbox.host}/hook`,
    previous_secret_until: expect.any(String),
  });
  for (const each of shown) expect(JSON.stringify(each)).not.toMatch(/whsec_|hidden/);
});

test("a paused webhook receives only tests", async () => {
  const inbox = await webhookInbox(500);
  const ada = (await serve()).as("ada");
  const spec = { url: inbox.url, on: ["run.ended"] };
  await ada.ask("PUT", "/webhooks/mine", { ...spec, paused: true });
  await ada.run("t1", "hello");
  expect((await ada.ask("POST", "/webhooks/mine/test")).answer).toEqual({
    ...{ delivered: false, http_status: 500, error: "it answered 500" },
  });
  expect((await ada.ask("POST", "/webhooks/mine/test")).answer).toEqual({
    delivered: true,
    http_status: 204,
  });
  expect((await ada.ask("GET", "/webhooks/mine/deliveries")).answer.items).toEqual([]);
  await ada.ask("PUT", "/webhooks/mine", spec);
  await ada.run("t2", "hello");
  await expect.poll(() => typesIn(inbox.received)).toEqual(["webhook.test", "webhook.test", "run.ended"]);
});

test("a user's webhooks are limited, belong to that user, and change only at the version that was read", async () => {
  const server = await serve({ config: { limits: { webhooks: 2 } } });
  const [ada, bob] = [server.as("ada"), server.as("bob")];
  const spec = { url: "https://example.com/", on: ["run.ended"] };
  const { etag } = await ada.ask("PUT", "/webhooks/one", spec);
  await ada.ask("PUT", "/webhooks/two", spec);
  expect((await ada.ask("PUT", "/webhooks/three", spec)).answer).toMatchObject({
    ...{ code: "limit_exceeded", details: { limit: "webhooks", most: 2 } },
  });
  expect((await bob.ask("GET", "/webhooks/one")).answer).toMatchObject({ code: "not_found" });
  expect((await bob.ask("PUT", "/webhooks/three", spec)).status).toBe(201);
  expect(
    (await ada.ask("PUT", "/webhooks/one", { ...spec, paused: true }, { "if-match": etag })).status,
  ).toBe(200);
  const stale = await ada.ask("DELETE", "/webhooks/one", undefined, { "if-match": etag });
  expect(stale.answer).toMatchObject({ code: "precondition_failed" });
  expect((await ada.ask("GET", "/webhooks/one")).answer.paused).toBe(true);
  expect((await ada.ask("DELETE", "/webhooks/one")).status).toBe(204);
  expect((await ada.ask("GET", "/webhooks")).answer.items).toMatchObject([{ id: "two" }]);
});

test("a webhook whose address is not public is refused", async () => {
  const ada = (await serve({ config: { http_tools: {} } })).as("ada");
  for (const url of [
    "http://127.0.0.1:9/",
    "http://169.254.169.254/",
    "http://[::1]/",
    "ftp://example.com/",
  ]) {
    const refused = await ada.ask("PUT", "/webhooks/mine", { url, on: ["run.ended"] });
    expect(refused.answer).toMatchObject({ code: "invalid_request" });
  }
});

test("webhooks are exported without secrets, and deleted with the user", async () => {
  const inbox = await webhookInbox();
  const server = await serve();
  const ada = server.as("ada");
  await ada.ask("PUT", "/webhooks/mine", { url: inbox.url, on: ["run.ended"] });
  await ada.run("t1", "hello");
  await expect.poll(() => inbox.received.length).toBe(1);
  const path = "/admin/tenants/acme/users/ada";
  const exported = await fetch(`${server.url}${path}/export`, { headers: asUser("root", "admin") });
  const lines = await exported.text();
  expect(lines).toContain('"type":"webhook"');
  expect(lines).not.toMatch(/whsec_|hidden/);
  const deleted = await server.as("root").ask("DELETE", path);
  expect(deleted.answer).toMatchObject({ complete: true });
  expect((await ada.ask("GET", "/webhooks")).answer.items).toEqual([]);
  await ada.ask("PUT", "/webhooks/mine", { url: inbox.url, on: ["run.ended"] });
  expect((await ada.ask("GET", "/webhooks/mine/deliveries")).answer.items).toEqual([]);
});

test("deliveries of a tenant's webhook about a user are deleted with the user, and others are kept", async () => {
  const inbox = await webhookInbox();
  const server = await serve();
  const [root, ada, bob] = [server.as("root"), server.as("ada"), server.as("bob")];
  for (const ordered of [true, false])
    await root.ask("PUT", `/admin/webhooks/${ordered}`, { url: inbox.url, on: ["run.ended"], ordered });
  await ada.run("t1", "hello");
  await bob.run("t2", "hello");
  await expect.poll(() => inbox.received.length).toBe(4);
  const deleted = await root.ask("DELETE", "/admin/tenants/acme/users/ada");
  expect(deleted.answer).toMatchObject({ complete: true });
  for (const id of ["true", "false"]) {
    const { items } = (await root.ask("GET", `/admin/webhooks/${id}/deliveries`)).answer;
    expect(
      items.map(({ thread_id }) => thread_id),
      id,
    ).toEqual(["t2"]);
  }
});

test("a tenant's webhook keeps no delivery of a run that ended because its user was deleted", async () => {
  const inbox = await webhookInbox();
  const { tool, entered } = gate();
  const server = await serve({ script: gated, agents: WITH_GATE, tools: [tool] });
  const [root, ada] = [server.as("root"), server.as("ada")];
  await root.ask("PUT", "/admin/webhooks/all", { url: inbox.url, on: ["run.ended", "run.failed"] });
  await ada.ask("POST", "/threads/t1/runs", { input: "hello", agent: "assistant", background: true });
  await entered;
  const deleted = await root.ask("DELETE", "/admin/tenants/acme/users/ada");
  expect(deleted.answer).toMatchObject({ complete: true, runs_cancelled: 1 });
  expect((await root.ask("GET", "/admin/webhooks/all/deliveries")).answer.items).toEqual([]);
});

test("a user and a tenant are notified once about a mostly used budget", async () => {
  const [mine, all] = [await webhookInbox(), await webhookInbox()];
  const quotas = { user: { tokens_per_day: 100_000 }, tenant: { tokens_per_month: 100_000 } };
  const usage = { input_tokens: 85_000, output_tokens: 100 };
  const server = await serve({
    config: { quotas },
    script: (_, call) => ({ say: "ok", ...(call === 0 ? { usage } : {}) }),
  });
  const ada = server.as("ada");
  await ada.ask("PUT", "/webhooks/mine", { url: mine.url, on: ["budget.near"] });
  await ada.ask("PUT", "/admin/webhooks/all", { url: all.url, on: ["budget.near"] });
  for (const thread of ["t1", "t2", "t3"]) await ada.run(thread, "hello", "other");
  const ofUser = { of: "user", limit: "tokens_per_day", most: 100_000, used: 85_100, user: "ada" };
  const ofTenant = { of: "tenant", limit: "tokens_per_month", used: 85_100 };
  const told = ({ received }: { received: readonly Received[] }) =>
    received.map(({ message }) => message.data).sort((a, b) => (String(a.of) < String(b.of) ? -1 : 1));
  await expect.poll(() => told(mine)).toMatchObject([ofUser]);
  await expect.poll(() => told(all)).toMatchObject([ofTenant, ofUser]);
  // The neighbour's run notices the tenant's budget again.
  await server.as("bob").run("t1", "hello", "other");
  await ada.run("t4", "hello", "other");
  expect([told(mine).length, told(all).length]).toEqual([1, 2]);
});

test("a delivery that the receiver did not accept before the server stopped is sent by the next one", async () => {
  const dir = await temporaryFolder();
  const [away, back] = [await webhookInbox(...Array<number>(50).fill(500)), await webhookInbox()];
  const first = await serve({ dir, config: { store: "sqlite" } });
  const ada = first.as("ada");
  await ada.ask("PUT", "/webhooks/mine", { url: away.url, on: ["run.ended"] });
  await ada.run("t1", "hello");
  await expect.poll(() => away.received.length).toBeGreaterThan(0);
  await first.app.close();
  const next = await serve({ dir, config: { store: "sqlite" } });
  await next.as("ada").ask("PUT", "/webhooks/mine", { url: back.url, on: ["run.ended"] });
  await expect.poll(() => back.received.length).toBe(1);
  expect(back.received[0]?.headers["webhook-id"]).toBe(away.received[0]?.headers["webhook-id"]);
});
