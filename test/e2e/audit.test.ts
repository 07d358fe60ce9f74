// The trail: who did what to what, and when, as admins and operators read it.

import { pino } from "pino";
import { expect, test } from "vitest";
import type { Script } from "../../src/agent/models/scripted.ts";
import { createClient } from "../../src/client/client.ts";
import { omitUndefined } from "../../src/lib/omit-undefined.ts";
import { newApiKey } from "../../src/server/auth/api-keys.ts";
import { answersTo } from "../../src/skein/app/nouns.ts";
import { startCollector } from "../support/collector.ts";
import { asUser, BEHIND_GATEWAY } from "../support/gateway.ts";
import { postJson } from "../support/native.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { traced } from "../support/traced-server.ts";
import { webhookInbox } from "../support/webhook-inbox.ts";

type Who = ReturnType<typeof asUser>;
const ADA = asUser("ada", "read,run,tools");
const BOB = asUser("bob", "read,run,tools");
const ADMIN = asUser("root", "admin");
const STRANGER = asUser("eve", "admin,read,run", "other");
const OPERATOR = asUser("ops", "operator", "house");

async function serve({
  script,
  agents,
  now,
  ...more
}: { script?: Script; agents?: string; now?: () => number } & Record<string, unknown> = {}) {
  const log: string[] = [];
  const { url } = await startServer({
    config: {
      ...BEHIND_GATEWAY,
      auth: { ...BEHIND_GATEWAY.auth, external_operators: true },
      ...more,
    },
    ...omitUndefined({ agents, now }),
    script: script ?? (() => ({ say: "done" })),
    logger: pino({ level: "info" }, { write: (line: string) => log.push(line) }),
  });
  const as = (who: Who) => createClient({ baseUrl: url, headers: who });
  const actions = async () =>
    (await as(ADMIN).admin.audit()).items
      .filter(({ action }) => action !== "audit.read")
      .map(({ action, outcome, target }) => [action, outcome, target?.id].join(" "));
  return { url, log, as, actions };
}

test("the trail records a change with its user, address and time, but without its contents", async () => {
  const { url, as } = await serve();
  const before = new Date().toISOString();
  await fetch(`${url}/threads/t`, { method: "DELETE", headers: ADA });
  const from = { ...ADA, "x-request-id": "r-1", "x-forwarded-for": "198.51.100.1, 203.0.113.9, 127.0.0.1" };
  await postJson(`${url}/threads`, { id: "t", title: "a secret title" }, from);
  const admin = as(ADMIN).admin;
  await expect.poll(async () => (await admin.audit({ action: "thread" })).items).toHaveLength(2);
  const { items } = await admin.audit({ action: "thread" });
  expect(items).toEqual([
    {
      ...{ id: expect.stringMatching(/^aud_/), at: expect.any(String), tenant: "acme" },
      ...{ actor: { type: "user", id: "ada", user: "ada" }, action: "thread.create" },
      ...{ target: { type: "thread", id: "t" }, outcome: "ok", status: 201 },
      ...{ request_id: "r-1", ip: "203.0.113.9" },
    },
    expect.objectContaining({ action: "thread.delete", outcome: "refused", status: 404, ip: "127.0.0.1" }),
  ]);
  expect((items[0]?.at ?? "") >= before).toBe(true);
  expect(JSON.stringify(items)).not.toContain("secret");
});

test("without a gateway, the trail ignores the address that a client claims", async () => {
  const { url } = await startServer();
  await postJson(`${url}/threads`, { id: "t" }, { "x-forwarded-for": "203.0.113.9" });
  const { admin } = createClient({ baseUrl: url });
  const addresses = async () => (await admin.audit({ action: "thread" })).items.map(({ ip }) => ip);
  await expect.poll(addresses).toEqual(["127.0.0.1"]);
});

test("the trail records refused actions, and users' own reads and runs only if the settings say so", async () => {
  const doAll = async ({ as }: Awaited<ReturnType<typeof serve>>) => {
    await as(ADA).threads.create({ id: "mine" });
    await as(ADA).threads.get("mine");
    await as(ADA).start("mine", { input: "go" });
    await expect(as(BOB).threads.get("mine")).rejects.toMatchObject({ status: 404 });
    await expect(as(asUser("bob", "read")).threads.delete("mine")).rejects.toMatchObject({
      status: 403,
    });
    await expect(as(BOB).admin.users()).rejects.toMatchObject({ status: 403 });
    await as(ADA).threads.create({ id: "last" });
  };
  const plain = await serve();
  await doAll(plain);
  await expect
    .poll(plain.actions)
    .toEqual([
      "thread.create ok last",
      "user.list refused acme",
      "thread.delete refused mine",
      "thread.read refused mine",
      "thread.create ok mine",
    ]);
  const all = await serve({ audit: { reads: true, runs: true } });
  await doAll(all);
  await expect
    .poll(all.actions)
    .toEqual(
      expect.arrayContaining(["thread.read ok mine", "thread.run ok mine", "thread.read refused mine"]),
    );
});

test("an admin can read only the tenant's trail, and an operator any", async () => {
  const { as, actions } = await serve();
  await as(ADA).threads.create({ id: "t" });
  await as(STRANGER).threads.create({ id: "theirs" });
  await expect.poll(actions).toEqual(["thread.create ok t"]);
  const idsOf = async (who: Who, query: object = {}) =>
    (await as(who).admin.audit({ action: "thread", ...query })).items.map(({ target }) => target?.id);
  await expect.poll(() => idsOf(STRANGER)).toEqual(["theirs"]);
  expect(await idsOf(STRANGER, { tenant: "acme" })).toEqual([]);
  expect(await idsOf(OPERATOR, { tenant: "acme" })).toEqual(["t"]);
  expect(await idsOf(OPERATOR)).toEqual([]);
  await expect(as(ADA).admin.audit()).rejects.toMatchObject({ status: 403 });
});

test("an operator's action is recorded in the tenant's trail, and an admin cannot write to another tenant's", async () => {
  const { as } = await serve();
  await as(ADA).threads.create({ id: "t" });
  await expect(
    as(asUser("eve", "admin", "other")).admin.deleteUser({ tenant: "acme", user: "ada" }),
  ).rejects.toMatchObject({ status: 404 });
  await (await as(OPERATOR).admin.exportUser({ tenant: "acme", user: "ada" })).text();
  await as(OPERATOR).admin.deleteUser({ tenant: "acme", user: "ada" });
  const trail = async (who: Who, query: object) =>
    (await as(who).admin.audit(query)).items
      .filter(({ action }) => action !== "audit.read")
      .map(({ action, outcome, actor, target }) => ({
        ...{ action, outcome, actor, target },
      }));
  const actor = { type: "operator", id: "ops", user: "ops", tenant: "house" };
  const target = { type: "user", id: "ada", user: "ada" };
  // The user's entries outlast the user.
  await expect
    .poll(() => trail(ADMIN, { user: "ada" }))
    .toEqual([
      { action: "user.delete", outcome: "ok", actor, target },
      { action: "user.export", outcome: "ok", actor, target },
      expect.objectContaining({ action: "thread.create", actor: { type: "user", id: "ada", user: "ada" } }),
    ]);
  // The other tenant's trail is written by itself.
  const eve = { type: "user", id: "eve", user: "eve" };
  await expect
    .poll(() => trail(STRANGER, { action: "user" }))
    .toEqual([{ action: "user.delete", outcome: "refused", actor: eve, target }]);
});

test("the trail can be read in pages, by action, user and time, with each entry once", async () => {
  const { as } = await serve();
  for (const id of ["a", "b", "c", "d", "e"]) await as(id < "c" ? ADA : BOB).threads.create({ id });
  const admin = as(ADMIN).admin;
  const idsOf = (page: Awaited<ReturnType<typeof admin.audit>>) => page.items.map(({ target }) => target?.id);
  await expect.poll(async () => idsOf(await admin.audit({ action: "thread.create" }))).toEqual([..."edcba"]);
  const found = [];
  let cursor: string | undefined;
  do {
    const page = await admin.audit({ action: "thread", limit: 2, ...omitUndefined({ cursor }) });
    expect(page.items.length).toBeLessThanOrEqual(2);
    found.push(...idsOf(page));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  expect(found).toEqual([..."edcba"]);
  expect(idsOf(await admin.audit({ user: "ada" }))).toEqual(["b", "a"]);
  const [, , c] = (await admin.audit({ action: "thread" })).items;
  const at = c?.at ?? "";
  expect(idsOf(await admin.audit({ action: "thread", until: at }))).toContain("c");
  expect(idsOf(await admin.audit({ action: "thread", since: at }))).toContain("c");
  expect(idsOf(await admin.audit({ action: "thread", until: "2000-01-01T00:00:00Z" }))).toEqual([]);
  expect(idsOf(await admin.audit({ action: "thread", since: "2100-01-01T00:00:00Z" }))).toEqual([]);
  await expect(admin.audit({ cursor: "x" })).rejects.toMatchObject({ status: 400 });
});

test("entries are log lines and events of the tenant's webhooks, if configured", async () => {
  const inbox = await webhookInbox();
  const { as, log, actions } = await serve({ audit: { log: true }, http_tools: { allow: inbox.host } });
  const spec = { url: inbox.url, on: ["audit.entry" as const] };
  await expect(as(ADA).webhooks.put("mine", spec)).rejects.toMatchObject({ status: 400 });
  await as(ADMIN).admin.webhooks.put("all", spec);
  await as(ADA).threads.create({ id: "t" });
  await expect.poll(actions).toContain("thread.create ok t");
  const entries = () => inbox.received.map(({ message }) => message.data.entry);
  await expect
    .poll(entries)
    .toContainEqual(
      expect.objectContaining({ action: "thread.create", target: { type: "thread", id: "t" } }),
    );
  expect(log.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ msg: "audit", audit: expect.objectContaining({ action: "thread.create" }) }),
  );
});

const ASKING = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    permissions: { rules: [{ ask: write_file }] }
`;

test("an answer to an approval is recorded with its decision, once on every wire", async () => {
  const call = { tool: "write_file", args: { path: "a.txt", content: "secret" } };
  const { url, as, actions } = await serve({
    script: ({ messages }) => (messages.at(-1)?.role === "user" ? { call: [call] } : { say: "done" }),
    agents: ASKING,
    wires: ["openai"],
  });
  const ada = as(ADA);
  const run = await ada.start("one", { input: "go" });
  for await (const _ of ada.runs.events("one", run.id));
  const [asked] = await ada.interrupts("one");
  await ada.answer("one", run.id, [{ id: asked?.id ?? "", decision: "deny" }]);
  await expect.poll(() => actions()).toEqual([`interrupt.deny ok ${asked?.id}`]);
  await expect(ada.answer("one", run.id, [{ id: "none", decision: "approve" }])).rejects.toMatchObject({
    status: 409,
  });

  const ask = async (body: object) => {
    const response = await postJson(`${url}/v1/responses`, body, ADA);
    return (await response.json()) as { id: string; output: { type: string; id: string }[] };
  };
  const { id, output } = await ask({ model: "assistant", input: "go" });
  const request = output.find(({ type }) => type === "mcp_approval_request");
  const approval = { type: "mcp_approval_response", approval_request_id: request?.id, approve: true };
  await ask({ model: "assistant", previous_response_id: id, input: [approval] });
  await expect
    .poll(() => actions())
    .toEqual([
      expect.stringMatching(/^interrupt.approve ok /),
      `run.answer failed ${run.id}`,
      `interrupt.deny ok ${asked?.id}`,
    ]);
});

test("an answer that was sent with an API key is recorded with the key and its user", () => {
  const entries: unknown[] = [];
  answersTo({ record: (entry) => void entries.push(entry) })(
    { tenant: "acme", user: "ada" },
    { api_key: "key_1", answers: [{ id: "approval_1", decision: "approve" }] },
  );
  expect(entries).toMatchObject([{ actor: { type: "key", id: "key_1", user: "ada" } }]);
});

test("the trail records runs started by schedules and triggers, and deliveries that a trigger refuses", async () => {
  let late = 0;
  const { url, as } = await serve({ now: () => Date.now() + late });
  const secret = "a secret of 16 characters or more";
  const trigger = await as(ADA).triggers.put("hook", {
    agent: "assistant",
    verify: { scheme: "token" },
    secret,
    input: "go",
  });
  const deliver = (token: string) =>
    fetch(url + trigger.url, {
      method: "POST",
      headers: { "x-skein-token": token, authorization: `Bearer ${token}` },
    });
  await deliver("another");
  expect((await deliver(secret)).status).toBe(202);
  const at = new Date(Date.now() + 300_000).toISOString();
  await as(ADA).schedules.put("soon", { at, input: "go" });
  late = 300_000;
  const started = async () =>
    (await as(ADMIN).admin.audit({ action: "run" })).items.map(({ actor, outcome, target }) => ({
      ...{ actor, outcome, target },
    }));
  const run = { type: "run", id: expect.stringMatching(/^run_/), user: "ada" };
  await expect.poll(started).toEqual([
    { actor: { type: "schedule", id: "soon", user: "ada" }, outcome: "ok", target: run },
    { actor: { type: "trigger", id: "hook", user: "ada" }, outcome: "ok", target: run },
    {
      ...{ actor: { type: "trigger", id: "hook", user: "ada" }, outcome: "refused" },
      target: { type: "trigger", id: "hook", user: "ada" },
    },
  ]);
});

test("entries are deleted after `audit.keep`, even those of an earlier server", async () => {
  const dir = await temporaryFolder();
  const config = { ...BEHIND_GATEWAY, store: "sqlite", audit: { keep: "1h" } };
  const trail = async (url: string) =>
    (await createClient({ baseUrl: url, headers: ADMIN }).admin.audit({ action: "thread" })).items.length;
  const before = await startServer({ dir, config });
  await createClient({ baseUrl: before.url, headers: ADA }).threads.create({ id: "t" });
  await expect.poll(() => trail(before.url)).toBe(1);
  await before.app.close();
  const { url } = await startServer({ dir, config, now: () => Date.now() + 3_601_000 });
  await expect.poll(() => trail(url)).toBe(0);
});

test("a schedule that is paused because its key was revoked is recorded, and a webhook receives the reason", async () => {
  const [inbox, root] = [await webhookInbox(), newApiKey().key];
  let late = 0;
  const { url } = await startServer({
    config: { auth: { scheme: "api_key", bootstrap_key: root }, http_tools: { allow: inbox.host } },
    now: () => Date.now() + late,
  });
  const as = (key: string) => createClient({ baseUrl: url, headers: { authorization: `Bearer ${key}` } });
  const { admin } = as(root);
  const { key, id } = await admin.createKey({ user: "ada" });
  const at = new Date(Date.now() + 300_000).toISOString();
  await as(key).schedules.put("soon", { at, input: "go" });
  await as(key).webhooks.put("mine", { url: inbox.url, on: ["schedule.paused"] });
  await admin.revokeKey(id);
  await expect
    .poll(() =>
      as(key)
        .me()
        .catch(({ status }) => status),
    )
    .toBe(401);
  late = 300_000;
  const data = {
    schedule_id: "soon",
    reason: "credentials_ended",
    message: expect.stringContaining("revoked"),
  };
  await expect
    .poll(() => inbox.received.map(({ message }) => message.data))
    .toEqual([expect.objectContaining(data)]);
  const of = { type: "schedule", id: "soon", user: "ada" };
  await expect
    .poll(async () => (await admin.audit({ action: "schedule.pause" })).items)
    .toMatchObject([{ actor: of, target: of, outcome: "failed" }]);
});

test("with `audit.otlp`, a collector receives each entry as a log record, even the last before the server stops", async () => {
  const collector = await startCollector();
  const { url, app } = await traced(collector.url, {
    config: {
      auth: { ...BEHIND_GATEWAY.auth, external_operators: true },
      audit: { otlp: true },
    },
  });
  const ada = createClient({ baseUrl: url, headers: ADA });
  await fetch(`${url}/threads/t`, { method: "DELETE", headers: ADA });
  await expect.poll(() => collector.records.length).toBe(1);
  await expect
    .poll(async () => (await fetch(`${url}/metrics`, { headers: ADMIN })).text())
    .toContain('skein_audit_records_total{outcome="sent"} 1');
  await ada.threads.create({ id: "t" });
  await createClient({ baseUrl: url, headers: OPERATOR }).admin.deleteUser({ tenant: "acme", user: "ada" });
  await app.close();
  expect(collector.faults).toEqual([]);
  expect(collector.records.map(({ body, severity }) => [body, severity])).toEqual([
    ["thread.delete", "WARN"],
    ["thread.create", "INFO"],
    ["user.delete", "INFO"],
  ]);
  const [refused, , deleted] = collector.records;
  expect(deleted?.attributes).toMatchObject({ "skein.tenant": "acme", "skein.audit.actor.tenant": "house" });
  expect(refused).toMatchObject({ name: "skein.audit", resource: { "service.name": "skein" } });
  expect(refused?.attributes).toEqual({
    "skein.audit.id": expect.stringMatching(/^aud_/),
    ...{ "skein.audit.action": "thread.delete", "skein.audit.outcome": "refused", "skein.tenant": "acme" },
    ...{ "skein.audit.actor.type": "user", "skein.audit.actor.id": "ada", "skein.audit.actor.user": "ada" },
    ...{ "skein.audit.target.type": "thread", "skein.audit.target.id": "t" },
    "skein.request.id": expect.any(String),
    ...{ "http.response.status_code": 404, "client.address": "127.0.0.1" },
  });
});

test("`audit.otlp` without a collector prevents the start, and the error names the setting", async () => {
  await expect(startServer({ config: { audit: { otlp: true } } })).rejects.toThrow(
    /OTEL_EXPORTER_OTLP_ENDPOINT/,
  );
});
