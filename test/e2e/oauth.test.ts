// Accounts at MCP servers that people connect in a browser.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { ElicitRequest } from "@modelcontextprotocol/client";
import { expect, onTestFinished, test } from "vitest";
import type { KeyWrapper } from "../../src/agent/core/key-wrapper.ts";
import type { Model } from "../../src/agent/core/model.ts";
import { scriptedModel, type Turn } from "../../src/agent/models/scripted.ts";
import { createClient } from "../../src/client/client.ts";
import { localWrapper } from "../../src/engine/vault/cipher.ts";
import { issueApiKey } from "../../src/server/auth/api-keys.ts";
import { ServerConfig } from "../../src/server/config/server.ts";
import { openApiKeys } from "../../src/skein/app/stores.ts";
import {
  type AuthorizationServer,
  authorizationServer,
  newBrowser,
  visit,
} from "../support/authorization-server.ts";
import { connectAt, consent, type OAuthMcpServer, oauthMcpServer, proceed } from "../support/connecting.ts";
import { type ServerOptions, startServer, temporaryFolder } from "../support/server.ts";
import { connected, outcomeOf, run } from "../wires/mcp/client.ts";

interface Deployment {
  readonly issuer: AuthorizationServer;
  readonly calendar: OAuthMcpServer;
}

async function deployment(): Promise<Deployment> {
  const issuer = await authorizationServer();
  return { issuer, calendar: await oauthMcpServer(issuer) };
}

const agentsOf = ({ calendar }: Deployment, { auth = "{ oauth: {} }", per = "user" } = {}) => `
mcp_servers:
  calendar: { url: "${calendar.url}", per: ${per}, auth: ${auth}, trust_annotations: true }
agents:
  assistant: { model: "scripted:test", tools: ["mcp__calendar__*"], hooks: { todos: false }, permissions: { mode: bypass } }
`;

const list = { call: [{ tool: "mcp__calendar__list", args: {} }] };
const ask = { call: [{ tool: "mcp__calendar__connect", args: {} }] };
/** Asks for the account, then uses it. */
const looks = (text: string): Turn =>
  text.includes("look") ? ask : text.includes("are now available") ? list : { say: "done" };

interface Serving extends ServerOptions {
  readonly auth?: string;
  readonly per?: string;
}

async function serve(parts: Deployment, { auth, per, config, ...more }: Serving = {}) {
  const script = ({ messages }: { messages: readonly unknown[] }) => looks(JSON.stringify(messages.at(-1)));
  const server = await startServer({
    agents: agentsOf(parts, { ...(auth ? { auth } : {}), ...(per ? { per } : {}) }),
    script: script as never,
    ...more,
    config: {
      auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
      http_tools: { allow: "127.0.0.1" },
      vault: { key: randomBytes(32).toString("base64") },
      ...config,
    },
  });
  const as = (user: string, tenant = "acme", scopes = "read,run,admin") => {
    const headers = { "x-skein-tenant": tenant, "x-skein-user": user, "x-skein-scopes": scopes };
    const client = createClient({ baseUrl: server.url, headers });
    return {
      headers,
      client,
      address: async () => (await client.connections.authorize("calendar")).url,
      connections: async () => (await client.connections.list()).items,
      /** Ends when the run does. */
      async run(input: string, thread = "t") {
        for await (const _ of client.run(thread, { input }));
      },
      interrupts: (thread = "t") => client.interrupts(thread),
      /** What an export of the user has of a type. */
      async exported(type: string) {
        const path = `${server.url}/admin/tenants/${tenant}/users/${user}/export`;
        const text = await (await fetch(path, { headers })).text();
        return text.split("\n").filter((line) => line.includes(`"type":"${type}"`));
      },
      messages: async (thread = "t") => JSON.stringify(await client.threads.messages(thread)),
    };
  };
  return { ...server, as };
}

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

test("only the browser that opened Skein's address can return with the consent", async () => {
  const parts = await deployment();
  const { as, url } = await serve(parts);
  const ada = as("ada");
  const [mine, theirs] = [newBrowser(), newBrowser()];
  const address = await ada.address();
  const back = await consent(address, mine);
  // The link of the authorization server was sent to someone else, who agreed to it.
  for (const browser of [theirs, newBrowser()]) expect((await visit(browser, back)).status).toBe(403);
  await visit(theirs, new URL(await ada.address()));
  expect((await visit(theirs, back)).status).toBe(403);
  expect(await ada.connections()).toEqual([]);
  // No link leads past the question of Skein.
  const { searchParams } = new URL(address);
  const past = new URL(`/oauth/continue?key=${searchParams.get("key")}&from=${"x".repeat(43)}`, url);
  expect((await visit(theirs, past)).status).toBe(403);
  expect((await visit(mine, back)).status).toBe(200);
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
});

test("a browser that is signed in as another user is stopped, and the page names the account's owner", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const address = await as("ada").address();
  for (const other of [as("bob"), as("ada", "other")]) {
    const browser = { ...newBrowser(), headers: other.headers };
    expect(await proceed(address, browser)).toMatchObject({ status: 403 });
  }
  const { page } = await proceed(address, { ...newBrowser(), headers: as("ada").headers });
  expect(page).toContain("<strong>ada</strong> of the tenant <strong>acme</strong>");
  expect(parts.issuer.tokenRequests).toEqual([]);
});

test("a browser that returns signed in as another user connects nothing", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  const browser = newBrowser();
  const back = await consent(await ada.address(), browser);
  for (const other of [as("bob"), as("ada", "other")])
    expect((await visit({ ...browser, headers: other.headers }, back)).status).toBe(403);
  expect(parts.issuer.tokenRequests).toEqual([]);
  expect(await ada.connections()).toEqual([]);
  // Their visits have not used it up.
  expect((await visit({ ...browser, headers: ada.headers }, back)).status).toBe(200);
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
});

test("a consent counts once, and only within ten minutes", async () => {
  const parts = await deployment();
  let late = 0;
  const { as } = await serve(parts, { now: () => Date.now() + late });
  const ada = as("ada");
  const browser = newBrowser();
  const back = await consent(await ada.address(), browser);
  expect((await visit(browser, back)).status).toBe(200);
  expect((await visit(browser, back)).status).toBe(404);
  expect(parts.issuer.tokenRequests).toHaveLength(1);
  const [first, second] = [await ada.address(), await ada.address()];
  const tooLate = await consent(first, browser);
  late = 11 * 60_000;
  expect((await visit(browser, tooLate)).status).toBe(404);
  expect(await proceed(second, newBrowser())).not.toHaveProperty("page");
  expect(parts.issuer.tokenRequests).toHaveLength(1);
});

test("an address that is opened often leads back from its last visit only, and keeps nothing of the others", async () => {
  const parts = await deployment();
  const { as, dir } = await serve(parts, { config: { store: "sqlite" } });
  const ada = as("ada");
  const address = await ada.address();
  const places = () => {
    const database = new DatabaseSync(join(dir, "data", "skein.db"), { readOnly: true });
    const sql = "SELECT count(*) AS number FROM documents WHERE collection LIKE '%connect_places%'";
    const [row] = database.prepare(sql).all();
    database.close();
    return Number(row?.number);
  };
  const first = newBrowser();
  const tooEarly = await consent(address, first);
  for (let visit = 0; visit < 3; visit++) await proceed(address, newBrowser());
  const browser = newBrowser();
  const back = await consent(address, browser);
  // One leads from the address to the request, and one from the last visit.
  expect(places()).toBe(2);
  expect((await visit(first, tooEarly)).status).toBe(404);
  expect((await visit(browser, back)).status).toBe(200);
  expect(places()).toBe(0);
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
});

test("an account that is connected in the moment in which another one was replaces it", async () => {
  const parts = await deployment();
  const moment = Date.now();
  const { as } = await serve(parts, { now: () => moment });
  const ada = as("ada");
  await connectAt(await ada.address());
  parts.issuer.state.account = "grace";
  await connectAt(await ada.address());
  await ada.run("look");
  expect(await ada.messages()).toContain("the calendar of grace");
});

test("an account that was connected later stays when the tokens of an earlier consent arrive late", async () => {
  const parts = await deployment();
  const hold = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const own = localWrapper(randomBytes(32).toString("base64"));
  let isFirst = true;
  const vaultKey: KeyWrapper = {
    ...own,
    async wrap(key, context) {
      if (!isFirst || !context.includes("connections")) return own.wrap(key, context);
      isFirst = false;
      held.resolve();
      await hold.promise;
      return own.wrap(key, context);
    },
  };
  const { as } = await serve(parts, { plugins: [{ name: "keys", vaultKey }] });
  const ada = as("ada");
  const early = connectAt(await ada.address());
  await held.promise;
  parts.issuer.state.account = "grace";
  await connectAt(await ada.address());
  hold.resolve();
  await early;
  await ada.run("look");
  expect(await ada.messages()).toContain("the calendar of grace");
});

test.each(["exchanged", "stored"])(
  "an account that its user deletes while the tokens of an earlier consent are being %s stays deleted, and they are revoked",
  async (step) => {
    const parts = await deployment();
    const hold = Promise.withResolvers<void>();
    const own = localWrapper(randomBytes(32).toString("base64"));
    let stored = 0;
    const vaultKey: KeyWrapper = {
      ...own,
      async wrap(key, context) {
        if (context.includes("connections") && ++stored === 2) await hold.promise;
        return own.wrap(key, context);
      },
    };
    const { as } = await serve(parts, { plugins: [{ name: "keys", vaultKey }] });
    const ada = as("ada");
    await connectAt(await ada.address());
    if (step === "exchanged") parts.issuer.state.pause = hold.promise;
    const connecting = connectAt(await ada.address());
    const isHeld = () => (step === "exchanged" ? parts.issuer.tokenRequests.length : stored);
    await expect.poll(isHeld).toBe(2);
    expect(await ada.client.connections.delete("calendar")).toEqual({ is_revoked: true });
    hold.resolve();
    expect((await connecting).status).toBe(404);
    expect(await ada.connections()).toEqual([]);
    expect(parts.issuer.revocations).toHaveLength(2);
    // A consent that is given afterwards counts.
    expect((await connectAt(await ada.address())).status).toBe(200);
    expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
  },
);

test("an account that is deleted can be connected at an address that was given out before", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  await connectAt(await ada.address());
  const [address, declined] = [await ada.address(), await ada.address()];
  parts.issuer.state.agrees = false;
  expect((await connectAt(declined)).status).toBe(403);
  parts.issuer.state.agrees = true;
  const browser = newBrowser();
  const back = await consent(address, browser);
  await ada.client.connections.delete("calendar");
  expect((await visit(browser, back)).status).toBe(200);
  expect((await connectAt(declined)).status).toBe(200);
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
});

test("a person who agrees twice at one address gets the account of the second consent", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  const address = await ada.address();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { state, tokenRequests, revocations } = parts.issuer;
  state.pause = first.promise;
  const early = connectAt(address);
  await expect.poll(() => tokenRequests.length).toBe(1);
  Object.assign(state, { pause: second.promise, account: "grace" });
  const late = connectAt(address);
  await expect.poll(() => tokenRequests.length).toBe(2);
  first.resolve();
  expect((await early).status).toBe(404);
  second.resolve();
  expect((await late).status).toBe(200);
  expect(revocations).toHaveLength(1);
  await ada.run("look");
  expect(await ada.messages()).toContain("the calendar of grace");
});

test("an answer from a different authorization server is refused, and its text is not shown", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  for (const change of [
    (back: URL) => back.searchParams.set("iss", "https://evil.example.com"),
    (back: URL) => back.searchParams.delete("iss"),
    (back: URL) => {
      back.searchParams.set("iss", "https://evil.example.com");
      back.searchParams.set("error", "words_of_an_attacker");
    },
  ]) {
    const browser = newBrowser();
    const back = await consent(await ada.address(), browser);
    change(back);
    const answer = await visit(browser, back);
    const text = await answer.text();
    expect(answer.status).toBe(403);
    expect(text).not.toMatch(/evil|attacker/);
    // A second answer with the same state is none.
    back.searchParams.set("iss", parts.issuer.url);
    expect((await visit(browser, back)).status).toBe(404);
  }
  expect(parts.issuer.tokenRequests).toEqual([]);
  expect(await ada.connections()).toEqual([]);
});

const SPOILED: readonly [string, (parts: Deployment) => void, string][] = [
  [
    "names another issuer",
    ({ issuer }) => (issuer.state.metadata = (own) => ({ ...own, issuer: "https://evil.example.com" })),
    "another issuer",
  ],
  [
    "has no PKCE",
    ({ issuer }) =>
      (issuer.state.metadata = (own) => ({ ...own, code_challenge_methods_supported: undefined })),
    "PKCE",
  ],
  [
    "has URLs without TLS",
    ({ issuer }) =>
      (issuer.state.metadata = (own) => ({ ...own, token_endpoint: "http://example.com/token" })),
    "without TLS",
  ],
  [
    "registers no one",
    ({ issuer }) => (issuer.state.metadata = (own) => ({ ...own, registration_endpoint: undefined })),
    "auth.oauth.client_id",
  ],
  ["refuses the registration", ({ issuer }) => (issuer.state.refusesClients = 403), "auth.oauth.client_id"],
  [
    "is at a private address",
    ({ calendar }) => (calendar.state.resource.authorization_servers = ["https://10.255.255.1"]),
    "no public address",
  ],
  [
    "is named without TLS",
    ({ calendar }) => (calendar.state.resource.authorization_servers = ["http://issuer.example.com"]),
    "authorization server must begin with https://",
  ],
  [
    "has its metadata at an address without TLS",
    ({ calendar }) => (calendar.state.metadata = "http://metadata.example.com/mcp"),
    "metadata must begin with https://",
  ],
  [
    "is of a server that is not itself",
    ({ calendar }) => (calendar.state.resource.resource = "https://other.example.com/mcp"),
    "another resource",
  ],
];

test.each(SPOILED)(
  "an authorization server that %s is not used, and the caller learns why",
  async (_, spoil, words) => {
    const parts = await deployment();
    const { as } = await serve(parts);
    spoil(parts);
    await expect(as("ada").address()).rejects.toThrow(words);
    expect(await as("ada").connections()).toEqual([]);
  },
);

test("a user cannot connect a server without `auth`, an unknown one or a tenant's", async () => {
  const parts = await deployment();
  const { as } = await serve(parts, { per: "tenant" });
  await expect(as("ada").address()).rejects.toThrow("per: user");
  await expect(as("ada").client.connections.authorize("unknown")).rejects.toThrow("Send credentials instead");
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

test("a person who declines sees a confirmation, and can agree later", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const ada = as("ada");
  await ada.run("look");
  const [asked] = await ada.interrupts();
  parts.issuer.state.agrees = false;
  expect(await connectAt(asked?.url ?? "")).toMatchObject({
    status: 403,
    text: expect.stringContaining("you declined"),
  });
  expect(await ada.interrupts()).toHaveLength(1);
  parts.issuer.state.agrees = true;
  expect((await connectAt(asked?.url ?? "")).status).toBe(200);
  await expect.poll(() => ada.messages()).toContain("the calendar of ada");
});

test("Skein registers once at an authorization server, for all users and tenants", async () => {
  const parts = await deployment();
  const { as } = await serve(parts);
  const people = [as("ada"), as("bob"), as("ada", "other"), as("eve", "other")];
  const addresses = await Promise.all(people.map((each) => each.address()));
  for (const address of addresses) expect((await connectAt(address)).status).toBe(200);
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

test("the operator's client is used only at its own issuer", async () => {
  const parts = await deployment();
  const auth = `{ oauth: { client_id: mine, client_secret: secret, issuer: "https://login.example.com" } }`;
  const { as } = await serve(parts, { auth });
  await expect(as("ada").address()).rejects.toThrow("auth.oauth.issuer");
  const other = await serve(parts, {
    auth: `{ oauth: { client_id: mine, issuer: "${parts.issuer.url}", scopes: [calendar] } }`,
  });
  const { address } = await proceed(await other.as("ada").address(), newBrowser());
  expect(Object.fromEntries(new URL(address ?? "").searchParams)).toMatchObject({
    ...{ client_id: "mine", resource: parts.calendar.url, code_challenge_method: "S256" },
    scope: "calendar offline_access",
  });
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

test("no data is kept about a user who was deleted while at the authorization server", async () => {
  const parts = await deployment();
  const { as, url } = await serve(parts);
  const browser = newBrowser();
  const back = await consent(await as("eve").address(), browser);
  const admin = as("ada");
  const gone = await fetch(`${url}/admin/tenants/acme/users/eve`, {
    method: "DELETE",
    headers: admin.headers,
  });
  expect(gone.status).toBe(200);
  expect((await visit(browser, back)).status).toBe(404);
  expect(await as("eve").connections()).toEqual([]);
  expect(parts.issuer.tokenRequests).toEqual([]);
});

test("a server that was held up leaves the account alone that another one has connected meanwhile", async () => {
  const parts = await deployment();
  let late = 0;
  const hold = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const own = localWrapper(randomBytes(32).toString("base64"));
  /** Takes its time for the first connection. */
  const vaultKey: KeyWrapper = {
    ...own,
    async wrap(key, context) {
      const isFirst = late === 0 && context.includes("connections");
      if (isFirst) held.resolve();
      if (isFirst) await hold.promise;
      return own.wrap(key, context);
    },
  };
  const plugins = [{ name: "keys", vaultKey }];
  const { as } = await serve(parts, { now: () => Date.now() + late, plugins });
  const ada = as("ada");
  await ada.run("look");
  const [asked] = await ada.interrupts();
  const connecting = connectAt(asked?.url ?? "");
  await held.promise;
  // Longer than the claim of a request.
  late = 40_000;
  await expect.poll(() => ada.messages()).toContain("the calendar of ada");
  await expect.poll(async () => (await ada.exported("connection_request")).length).toBe(0);
  hold.resolve();
  expect((await connecting).text).toContain("The account is connected");
  expect(await ada.connections()).toMatchObject([{ id: "calendar" }]);
  expect(parts.calendar.calls).toEqual([{ user: "ada", tool: "list" }]);
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

test("a person reads the pages in the language of their browser, refusals too", async () => {
  const parts = await deployment();
  const { as, url } = await serve(parts);
  const address = await as("ada").address();
  const browser = { ...newBrowser(), headers: { "accept-language": "fr, de-CH;q=0.8, en;q=0.5" } };
  const { page } = await proceed(address, browser);
  expect(page).toContain('<html lang="de">');
  expect(page).toContain("<strong>ada</strong> beim Mandanten <strong>acme</strong>");
  const back = await consent(address, browser);
  const stranger = { ...newBrowser(), headers: browser.headers };
  expect(await (await visit(stranger, back)).text()).toContain("keine Cookies");
  expect(await (await visit(browser, back)).text()).toContain("Das Konto ist verbunden");
  expect(await (await visit(browser, back)).text()).toContain("wurde schon verwendet");
  expect(await (await visit(browser, new URL("/oauth/start", url))).text()).toContain("unvollständig");
  for (const accepted of ["en, de;q=0.5", "fr", "de;q=0", "*", "x".repeat(5000)]) {
    const other = { ...newBrowser(), headers: { "accept-language": accepted } };
    expect(await (await visit(other, back)).text()).toContain('<html lang="en">');
  }
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

const HELLO = [{ role: "user", content: "look" }];
const ON_WIRES: readonly [string, string, object][] = [
  ["OpenAI chat", "/v1/chat/completions", { model: "assistant", messages: HELLO }],
  ["OpenAI responses", "/v1/responses", { model: "assistant", input: "look" }],
  [
    "AG-UI",
    "/ag-ui/agent/assistant/run",
    { threadId: "t", runId: "r", messages: [{ id: "m", ...HELLO[0] }] },
  ],
  [
    "AI SDK",
    "/ai-sdk/assistant/chat",
    { id: "t", messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "look" }] }] },
  ],
  [
    "LangGraph",
    "/langgraph/runs/wait",
    { assistant_id: "assistant", input: { messages: [{ type: "human", content: "look" }] } },
  ],
  [
    "A2A",
    "/a2a/assistant",
    {
      ...{ jsonrpc: "2.0", id: 1, method: "SendMessage" },
      params: { message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "look" }] } },
    },
  ],
];

const MORE_HEADERS = { "x-conversation-id": "c", "a2a-version": "1.0" };

test.each(ON_WIRES)("a front end of %s receives the address with the question", async (_, path, body) => {
  const parts = await deployment();
  const { as, url } = await serve(parts, {
    config: { wires: ["openai", "ag-ui", "ai-sdk", "langgraph", "a2a"] },
  });
  const response = await fetch(url + path, {
    method: "POST",
    headers: { ...as("ada").headers, ...MORE_HEADERS, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const [, address = ""] = /(http:[^\s"\\]+\/oauth\/start\?key=[\w-]+)/.exec(await response.text()) ?? [];
  expect((await connectAt(address)).text).toContain("The account is connected");
});

test.each([[{ url: {} }], [{ form: {}, url: {} }]])(
  "an MCP client that opens addresses (%j) is sent to this one within its call, and told when the person has finished",
  async (elicitation) => {
    const parts = await deployment();
    const { as, url } = await serve(parts, { config: { wires: ["mcp"] } });
    const asked: ElicitRequest["params"][] = [];
    const client = await connected(url, {
      ...{ headers: as("ada").headers, elicitation },
      ask({ params }) {
        asked.push(params);
        if (params.mode === "url") void connectAt(params.url);
        return { action: "accept" };
      },
    });
    const finished: object[] = [];
    client.setNotificationHandler(
      "notifications/elicitation/complete",
      ({ params }) => void finished.push(params),
    );
    const outcome = outcomeOf(await client.callTool(run("look")));
    expect(outcome).toMatchObject({ status: "success", text: "done" });
    expect(await as("ada").messages(outcome.thread_id)).toContain("the calendar of ada");
    expect(asked).toMatchObject([{ mode: "url", message: expect.stringContaining("your account") }]);
    const [id] = asked.map((each) => each.mode === "url" && each.elicitationId);
    expect(finished).toEqual([{ elicitationId: id }]);
  },
);

test("an MCP client whose person does not want to go to the address lets the agent know", async () => {
  const parts = await deployment();
  const { as, url } = await serve(parts, { config: { wires: ["mcp"] } });
  const client = await connected(url, {
    ...{ headers: as("ada").headers, elicitation: { url: {} } },
    ask: () => ({ action: "decline" }),
  });
  const outcome = outcomeOf(await client.callTool(run("look")));
  expect(outcome).toMatchObject({ status: "success", text: "done" });
  expect(await as("ada").messages(outcome.thread_id)).toContain("was not connected");
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

test("a call that needs more rights asks for them, and the new consent includes the old ones", async () => {
  const parts = await deployment();
  parts.calendar.state.challenge = ', scope="calendar"';
  const { as } = await serve(parts);
  const ada = as("ada");
  await connectAt(await ada.address());
  await expect.poll(async () => (await ada.client.agents.tools("assistant")).length).toBe(3);
  parts.calendar.state.needs = { list: "calendar.write" };
  await ada.run("look");
  const [asked] = await ada.interrupts();
  expect(asked).toMatchObject({ kind: "connect", name: "mcp__calendar__list" });
  expect(asked?.prompt).toContain("requires more rights");
  const { address } = await proceed(asked?.url ?? "", newBrowser());
  expect(new URL(address ?? "").searchParams.get("scope")).toBe("calendar calendar.write offline_access");
  expect((await connectAt(asked?.url ?? "")).status).toBe(200);
  await expect.poll(() => ada.messages()).toContain("the calendar of ada");
  expect(parts.calendar.calls).toEqual([{ user: "ada", tool: "list" }]);
});
