// Accounts at MCP servers that people connect in a browser, and the runs that wait for them.

import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Model } from "../../src/agent/core/model.ts";
import { scriptedModel } from "../../src/agent/models/scripted.ts";
import { createClient } from "../../src/client/client.ts";
import { issueApiKey } from "../../src/server/auth/api-keys.ts";
import { ServerConfig } from "../../src/server/config/server.ts";
import { openApiKeys } from "../../src/skein/app/stores.ts";
import { deployment, looks, serve } from "../support/account-server.ts";
import { newBrowser, visit } from "../support/authorization-server.ts";
import { connectAt, proceed } from "../support/connecting.ts";
import { temporaryFolder } from "../support/server.ts";

test("a person connects an account in a browser, and the run that asked for it continues automatically", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  await ada.run("look");
  const [asked] = await ada.interrupts();
  expect(asked).toMatchObject({ kind: "connect", prompt: expect.stringContaining("continues by itself") });
  const page = await connectAt(asked?.url ?? "");
  expect(page.text).toContain("The account is connected");
  expect(page.text).toContain("<strong>ada</strong>");
  await expect.poll(() => ada.messages()).toContain("the calendar of ada");
  expect(await ada.interrupts()).toEqual([]);
  expect(await ada.connections()).toMatchObject([
    {
      id: "calendar",
      type: "mcp_oauth",
      mcp_server_url: parts.calendar.url,
      refresh: { resource: parts.calendar.url },
    },
  ]);
  // The address has done its work.
  expect(await connectAt(asked?.url ?? "")).toMatchObject({ status: 404 });
});

test("an admin connects the account of a tenant, and the runs of all its users continue", async () => {
  const parts = await deployment();
  const { as } = await serve(parts, { per: "tenant" });
  const [ada, bob, other] = [as("ada"), as("bob"), as("bob", "other")];
  for (const person of [ada, bob, other]) await person.run("look");
  const [asked] = await bob.interrupts();
  // A user cannot connect it.
  expect(asked?.url).toBeUndefined();
  const { url } = await ada.client.admin.connections.authorize("calendar");
  expect((await connectAt(url)).text).toContain("all Skein users of the tenant");
  for (const person of [ada, bob])
    await expect.poll(() => person.messages()).toContain("the calendar of ada");
  expect(await other.interrupts()).toHaveLength(1);
  expect(await ada.connections()).toEqual([]);
});

test("an operator of another tenant connects the account of a tenant, and the trail and the page say who it was", async () => {
  const parts = await deployment();
  const auth = { scheme: "header", trusted_proxies: ["127.0.0.1"], external_operators: true };
  const { as } = await serve(parts, { per: "tenant", config: { auth } });
  const [ada, operator, namesake] = [as("ada"), as("root", "skein", "read,operator"), as("root")];
  const { url } = await operator.client.admin.connections.authorize("calendar", { tenant: "acme" });
  expect(await proceed(url, { ...newBrowser(), headers: namesake.headers })).toMatchObject({ status: 403 });
  const { text } = await connectAt(url, { ...newBrowser(), headers: operator.headers });
  expect(text).toContain("<strong>root</strong> of the tenant <strong>skein</strong>");
  await ada.run("look");
  expect(await ada.messages()).toContain("the calendar of ada");
  const entries = async () => (await ada.client.admin.audit({ action: "connection.connect" })).items;
  await expect
    .poll(entries)
    .toMatchObject([{ tenant: "acme", actor: { type: "operator", id: "root", tenant: "skein" } }]);
});

test("every waiting thread of the user continues, and no one else's", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const [ada, bob] = [as("ada"), as("bob")];
  for (const thread of ["a", "b", "c"]) await ada.run("look", thread);
  await bob.run("look");
  await connectAt(await ada.address());
  for (const thread of ["a", "b", "c"])
    await expect.poll(() => ada.messages(thread)).toContain("the calendar of ada");
  expect(await bob.interrupts()).toHaveLength(1);
  expect(await bob.connections()).toEqual([]);
  expect(await as("ada", "other").connections()).toEqual([]);
});

test("a connected account approves no call of its server that waits for approval", async () => {
  const parts = await deployment();
  const { as } = await serve(parts, { rules: "[{ ask: mcp__calendar__list }]" });
  const ada = as("ada");
  await connectAt(await ada.address());
  await ada.run("are now available", "asks");
  expect(await ada.interrupts("asks")).toMatchObject([{ kind: "approval" }]);
  const address = await ada.address();
  expect((await connectAt(address)).status).toBe(200);
  // Its runs have continued.
  await expect.poll(async () => (await visit(newBrowser(), new URL(address))).status).toBe(404);
  expect((await ada.client.runs.of("asks")).items).toMatchObject([{ status: "interrupted" }]);
});

test.each([
  "/.well-known/oauth-authorization-server/acme",
  "/.well-known/openid-configuration/acme",
  "/acme/.well-known/openid-configuration",
])("an authorization server below a path can describe itself at %s", async (place) => {
  const { issuer, calendar } = await deployment();
  const named = `${issuer.url}/acme`;
  calendar.state.resource.authorization_servers = [named];
  Object.assign(issuer.state, { place, metadata: (own: object) => ({ ...own, issuer: named }) });
  const { as } = await serve({ issuer, calendar });
  const { address } = await proceed(await as("ada").address(), newBrowser());
  expect(address).toMatch(`${issuer.url}/auth?`);
});

test("Skein registers once at an authorization server, for all users and tenants", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const people = [as("ada"), as("bob"), as("ada", "other"), as("eve", "other")];
  const addresses = await Promise.all(people.map((each) => each.address()));
  for (const address of addresses) expect((await connectAt(address)).status).toBe(200);
  expect(parts.issuer.registrations).toHaveLength(1);
});

test("a person can connect an account again whose authorization server has forgotten Skein", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  parts.issuer.state.lifetime = 1;
  await connectAt(await ada.address());
  await parts.issuer.forgetClients();
  const ended = async () => {
    await ada.client.agents.tools("assistant");
    return ada.connections();
  };
  await expect.poll(ended).toMatchObject([{ ended: { reason: expect.stringContaining("invalid_client") } }]);
  parts.issuer.state.lifetime = 600;
  expect((await connectAt(await ada.address())).text).toContain("The account is connected");
  expect(parts.issuer.registrations).toHaveLength(2);
  await ada.run("look");
  expect(await ada.messages()).toContain("the calendar of ada");
});

test("a user cannot make Skein register again with tokens of their own", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const [ada, eve] = [as("ada"), as("eve")];
  await connectAt(await ada.address());
  const [client_id = ""] = parts.issuer.registrations;
  await eve.client.connections.put("calendar", {
    ...{ type: "mcp_oauth", mcp_server_url: parts.calendar.url, access_token: "made-up" },
    expires_at: new Date(0).toISOString(),
    refresh: {
      ...{ client_id, refresh_token: "made-up", token_endpoint: `${parts.issuer.url}/token` },
      token_endpoint_auth: { type: "client_secret_basic", client_secret: "made-up" },
    },
  });
  await eve.client.agents.tools("assistant");
  expect(await eve.connections()).toMatchObject([
    { ended: { reason: expect.stringContaining("invalid_client") } },
  ]);
  expect((await connectAt(await eve.address())).status).toBe(200);
  expect(parts.issuer.registrations).toHaveLength(1);
});

test("with a public address, Skein publishes its metadata and registers nowhere", async () => {
  const parts = await deployment();
  parts.issuer.state.metadata = (own) => ({ ...own, client_id_metadata_document_supported: true });
  const base = "https://skein.example.com";
  const { as, url } = await serve(parts, { config: { public_url: base } });
  const browser = newBrowser();
  browser.servers.set(base, url);
  const address = await as("ada").address();
  const there = new URL((await proceed(address, browser)).address ?? "");
  const id = there.searchParams.get("client_id") ?? "";
  expect(id).toBe(`${base}/oauth/client-metadata.json`);
  const document = await (await visit(browser, new URL(id))).json();
  expect(document).toMatchObject({ client_id: id, redirect_uris: [there.searchParams.get("redirect_uri")] });
  expect(parts.issuer.registrations).toEqual([]);
  // No other site can set such a cookie.
  expect([...(browser.cookies.get(base)?.keys() ?? [])]).toEqual(["__Host-skein-connect"]);
});

test("tokens from a flow are renewed and revoked like those that an application stores", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  parts.issuer.state.lifetime = 1;
  await connectAt(await ada.address());
  await expect.poll(async () => (await ada.client.agents.tools("assistant")).length).toBe(3);
  await expect
    .poll(async () => {
      await ada.client.agents.tools("assistant");
      return parts.issuer.tokenRequests.map(({ grant_type, status }) => `${grant_type} ${status}`);
    })
    .toEqual(expect.arrayContaining(["authorization_code 200", "refresh_token 200"]));
  expect(await ada.client.connections.delete("calendar")).toEqual({ is_revoked: true });
});

test("a list of connections has the servers that can be connected and are not, and the last use of an account", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  const list = () => ada.client.connections.list();
  expect(await list()).toEqual({
    items: [],
    not_connected: [{ id: "calendar", mcp_server_url: parts.calendar.url }],
  });
  await connectAt(await ada.address());
  const connected = await list();
  expect(connected.not_connected).toEqual([]);
  expect(connected.items[0]?.last_used_at).toBeUndefined();
  await ada.run("look");
  await expect.poll(async () => (await list()).items[0]?.last_used_at).toBeDefined();
  expect((await ada.client.connections.get("calendar")).last_used_at).toBeDefined();
  expect((await list()).items[0]?.updated_at).toBe(connected.items[0]?.updated_at);
  // Another connection of this name was never used.
  await ada.client.connections.delete("calendar");
  await connectAt(await ada.address());
  expect((await list()).items[0]).not.toHaveProperty("last_used_at");
  expect((await as("ada").client.admin.connections.list()).not_connected).toEqual([]);
});

test("only an admin's list has the servers whose account is a tenant's", async () => {
  const parts = await deployment();
  const { as } = await serve(parts, { per: "tenant" });
  const { connections, admin } = as("ada").client;
  expect((await connections.list()).not_connected).toEqual([]);
  expect((await admin.connections.list()).not_connected).toMatchObject([{ id: "calendar" }]);
});

test("the trail records who connected which account", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  await connectAt(await ada.address());
  const entries = async () => (await ada.client.admin.audit({ action: "connection.connect" })).items;
  await expect
    .poll(entries)
    .toMatchObject([{ actor: { id: "ada" }, target: { id: "calendar", user: "ada" } }]);
});

test("runs that cannot continue immediately, because the user has too many, continue later", async () => {
  const parts = await deployment();
  const { as } = await serve(parts, { config: { quotas: { user: { concurrent_runs: 1 } } } });
  const ada = as("ada");
  for (const thread of ["a", "b", "c"]) await ada.run("look", thread);
  await connectAt(await ada.address());
  for (const thread of ["a", "b", "c"])
    await expect.poll(() => ada.messages(thread)).toContain("the calendar of ada");
});

test("a run that continues by itself ends with the API key that began it", async () => {
  const parts = await deployment();
  const dir = await temporaryFolder();
  const store = { store: "sqlite", data_dir: join(dir, "data") };
  const config = { ...store, auth: { scheme: "api_key", on_revoked: "cancel" } };
  const { url } = await serve(parts, { dir, config });
  const { keys, close } = await openApiKeys(ServerConfig.parse(config));
  onTestFinished(() => close());
  const issue = () =>
    issueApiKey(keys, { tenant: "acme", user: "ada", scopes: ["read", "run"] as const, name: "" });
  const [begun, other] = [await issue(), await issue()];
  const clientWith = ({ key }: { readonly key: string }) =>
    createClient({ baseUrl: url, headers: { authorization: `Bearer ${key}` } });
  for await (const _ of clientWith(begun).run("t", { input: "look" }));
  const client = clientWith(other);
  const [asked] = await client.interrupts("t");
  await keys.revoke(begun.record.id);
  await expect
    .poll(() =>
      clientWith(begun)
        .me()
        .catch(({ status }) => status),
    )
    .toBe(401);
  expect((await connectAt(asked?.url ?? "")).status).toBe(200);
  const statuses = async () => (await client.runs.of("t", { limit: 10 })).items.map(({ status }) => status);
  await expect.poll(statuses).toEqual(["cancelled", "interrupted"]);
  expect(parts.calendar.calls).toEqual([]);
});

test("a user who cannot start runs does not delay the other users of a tenant's account", async () => {
  const parts = await deployment();
  const hold = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const scripted = scriptedModel(({ messages }) => looks(JSON.stringify(messages.at(-1))));
  const model: Model = {
    ...scripted,
    async *stream(request, deltas) {
      if (JSON.stringify(request.messages.at(-1)).includes("hold")) {
        held.resolve();
        await hold.promise;
      }
      return yield* scripted.stream(request, deltas);
    },
  };
  const quotas = { user: { concurrent_runs: 1 } };
  const { as } = await serve(parts, { per: "tenant", model, config: { quotas } });
  const [ada, bob] = [as("ada"), as("bob")];
  for (const person of [ada, bob]) await person.run("look");
  const holding = ada.run("hold", "other");
  await held.promise;
  const { url } = await ada.client.admin.connections.authorize("calendar");
  expect((await connectAt(url)).status).toBe(200);
  await expect.poll(() => bob.messages()).toContain("the calendar of ada");
  expect(await ada.interrupts()).toHaveLength(1);
  hold.resolve();
  await holding;
  await expect.poll(() => ada.messages()).toContain("the calendar of ada");
});

/** Runs a call that needs more rights than its connection has. `challenge` is part of the server's refusal. */
async function withoutRights(challenge = "") {
  const parts = await deployment();
  parts.calendar.state.challenge = challenge;
  const { as } = await serve(parts);
  const ada = as("ada");
  await connectAt(await ada.address());
  await expect.poll(async () => (await ada.client.agents.tools("assistant")).length).toBe(3);
  parts.calendar.state.needs = { list: "calendar.write" };
  await ada.run("look");
  const [asked] = await ada.interrupts();
  return { ...parts, ada, asked };
}

test("a call that needs more rights asks for them, and the new consent includes the old ones", async () => {
  const { calendar, ada, asked } = await withoutRights(', scope="calendar"');
  expect(asked).toMatchObject({ kind: "connect", name: "mcp__calendar__list" });
  expect(asked?.prompt).toContain("requires more rights");
  const { address } = await proceed(asked?.url ?? "", newBrowser());
  expect(new URL(address ?? "").searchParams.get("scope")).toBe("calendar calendar.write offline_access");
  expect((await connectAt(asked?.url ?? "")).status).toBe(200);
  await expect.poll(() => ada.messages()).toContain("the calendar of ada");
  expect(calendar.calls).toEqual([{ user: "ada", tool: "list" }]);
});

test("a call that still lacks rights after a new consent fails, and asks no one again", async () => {
  const { calendar, ada, asked } = await withoutRights();
  calendar.state.needs = { list: "calendar.all" };
  await connectAt(asked?.url ?? "");
  await expect.poll(() => ada.messages()).toContain("does not have enough rights");
  expect(await ada.interrupts()).toEqual([]);
});
