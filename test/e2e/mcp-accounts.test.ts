// MCP servers that each user connects with an account of their own.

import { randomBytes } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import type { Turn } from "../../src/agent/models/scripted.ts";
import { createClient } from "../../src/client/client.ts";
import { answer, type HttpCall, overHttp } from "../agent/tools/mcp/over-http.ts";
import { authorizationServer, CLIENT } from "../support/authorization-server.ts";
import { startServer } from "../support/server.ts";

/** An MCP server that knows its users by their tokens, and lists a tool of its own for each. */
async function calendarServer(users: Map<string, string>) {
  const calls: { user: string; tool: string }[] = [];
  const state = { refuses: (_token: string) => false, refusesCalls: false };
  const tokenOf = ({ request }: Pick<HttpCall, "request">) =>
    String(request.headers.authorization ?? "").replace("Bearer ", "");
  const reply = (tool: string) => (call: HttpCall) => {
    if (state.refusesCalls) return void call.response.writeHead(401).end();
    const user = users.get(tokenOf(call)) ?? "unknown";
    calls.push({ user, tool });
    answer(call.response, call.id, { content: [{ type: "text", text: `the calendar of ${user}` }] });
  };
  const server = await overHttp({ list: reply("list"), add: reply("add") }, (request, response) => {
    const token = tokenOf({ request });
    if (users.has(token) && !state.refuses(token)) return false;
    response.writeHead(401, { "www-authenticate": "Bearer" }).end();
    return true;
  });
  return { ...server, calls, state };
}

async function serve(url: string, turns: readonly Turn[] | ((text: string) => Turn)) {
  const script =
    typeof turns === "function"
      ? ({ messages }: { messages: readonly unknown[] }) => turns(JSON.stringify(messages.at(-1)))
      : turns;
  const { url: base } = await startServer({
    agents: `
mcp_servers:
  calendar: { url: ${url}, per: user, trust_annotations: true }
agents:
  assistant: { model: "scripted:test", tools: ["mcp__calendar__*"], hooks: { todos: false }, permissions: { mode: bypass } }
`,
    script: script as never,
    config: {
      auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
      http_tools: { allow: "127.0.0.1" },
      vault: { key: randomBytes(32).toString("base64") },
    },
  });
  const as = (user: string, tenant = "acme") => {
    const headers = { "x-skein-tenant": tenant, "x-skein-user": user, "x-skein-scopes": "read,run,admin" };
    const client = createClient({ baseUrl: base, headers });
    const put = (connection: Parameters<typeof client.connections.put>[1]) =>
      client.connections.put("calendar", connection);
    return {
      put,
      connect: (token: string, mcp_server_url = url) => put({ type: "static_bearer", mcp_server_url, token }),
      forget: () => client.connections.delete("calendar"),
      tools: async () => (await client.agents.tools("assistant")).map(({ name }) => name),
      /** Ends when the run does. */
      run: async (input: string) => drained(client.run("t", { input })),
      async answer(decision: "approve" | "deny", message?: string) {
        const [asked] = await client.interrupts("t");
        const answer = { id: asked?.id ?? "", decision, ...(message === undefined ? {} : { message }) };
        return drained(client.resume("t", asked?.run_id ?? "", [answer]));
      },
      async uses() {
        const { items } = await client.admin.audit({ action: "connection.use" });
        return items.map(({ target }) => target?.user);
      },
      interrupts: async () => await client.interrupts("t"),
      messages: async () => JSON.stringify(await client.threads.messages("t")),
    };
  };
  return { as };
}

async function drained(events: AsyncIterable<unknown>) {
  for await (const _ of events);
}

const list = { call: [{ tool: "mcp__calendar__list", args: {} }] };

test("each user calls with their own token, and sees no tool before the account is connected", async () => {
  const users = new Map([
    ["token-of-ada", "ada"],
    ["token-of-bob", "bob"],
    ["token-of-eve", "ada of another tenant"],
  ]);
  const calendar = await calendarServer(users);
  const { as } = await serve(calendar.url, (text) => (text.includes("look") ? list : { say: "done" }));
  const [ada, bob, eve] = [as("ada"), as("bob"), as("ada", "other")];
  for (const [person, token] of [
    [ada, "token-of-ada"],
    [bob, "token-of-bob"],
  ] as const)
    await person.connect(token);
  const all = ["mcp__calendar__add", "mcp__calendar__connect", "mcp__calendar__list"];
  expect(await ada.tools()).toEqual(all);
  expect(await eve.tools()).toEqual(["mcp__calendar__connect"]);
  await Promise.all([ada.run("look"), bob.run("look")]);
  expect(calendar.calls.map(({ user }) => user).sort()).toEqual(["ada", "bob"]);
  expect(await ada.messages()).toContain("the calendar of ada");
  expect(await bob.messages()).toContain("the calendar of bob");
  // Each has a connection of their own, even with the same name in another tenant.
  await eve.connect("token-of-eve");
  for (const person of [eve, ada]) expect(await person.tools()).toEqual(all);
  const opened = calendar.requests.flatMap(({ headers }) => headers["mcp-session-id"] ?? []);
  expect(new Set(opened).size).toBe(3);
  // The trail tells of each use.
  await expect.poll(() => ada.uses()).toEqual(expect.arrayContaining(["ada", "bob"]));
});

test("a call without an account asks once per turn, and continues after the account is connected", async () => {
  const calendar = await calendarServer(new Map([["token-of-ada", "ada"]]));
  const both = {
    call: ["mcp__calendar__connect", "mcp__calendar__connect"].map((tool) => ({ tool, args: {} })),
  };
  const { as } = await serve(calendar.url, (text) => {
    if (text.includes("look")) return both;
    return text.includes("are now available") ? list : { say: "done" };
  });
  const ada = as("ada");
  await ada.run("look");
  expect(await ada.interrupts()).toMatchObject([{ kind: "connect", name: "mcp__calendar__connect" }]);
  await ada.connect("token-of-ada");
  await ada.answer("approve");
  expect(calendar.calls).toEqual([{ user: "ada", tool: "list" }]);
  expect(await ada.interrupts()).toEqual([]);
});

test("a declined account is reported to the model once, and the run continues without it", async () => {
  const calendar = await calendarServer(new Map());
  const connect = { call: ["a", "b"].map(() => ({ tool: "mcp__calendar__connect", args: {} })) };
  let asked = 0;
  const { as } = await serve(calendar.url, (text) =>
    text.includes("look") || (text.includes("was not connected") && asked++ === 0)
      ? connect
      : { say: "done" },
  );
  const ada = as("ada");
  await ada.run("look");
  await ada.answer("deny", "Not today.");
  expect(await ada.interrupts()).toEqual([]);
  expect(await ada.messages()).toContain("Not today.");
});

test("a token is sent only to the address that it was connected for", async () => {
  const calendar = await calendarServer(new Map([["token-of-ada", "ada"]]));
  const { as } = await serve(calendar.url, [{ say: "done" }]);
  const ada = as("ada");
  await ada.connect("token-of-ada", "https://other.example.com/mcp");
  expect(await ada.tools()).toEqual(["mcp__calendar__connect"]);
  expect(calendar.requests).toEqual([]);
});

test("a token that the server no longer accepts is renewed once, and the call is made once", async () => {
  const issuer = await authorizationServer("http://127.0.0.1/mcp");
  const users = new Map<string, string>();
  const calendar = await calendarServer(users);
  const { as } = await serve(calendar.url, (text) => (text.includes("look") ? list : { say: "done" }));
  const { access_token, refresh_token } = await issuer.grant();
  const ada = as("ada");
  users.set(access_token, "ada");
  await ada.put({
    ...{ type: "mcp_oauth", mcp_server_url: calendar.url, access_token },
    refresh: {
      ...{ client_id: CLIENT.client_id, refresh_token, token_endpoint: `${issuer.url}/token` },
      token_endpoint_auth: { type: "client_secret_basic", client_secret: CLIENT.client_secret },
    },
  });
  expect(await ada.tools()).toContain("mcp__calendar__list");
  // From now on it accepts any other token.
  calendar.state.refuses = (token) => token === access_token;
  const has = users.has.bind(users);
  users.has = (token) => has(token) || token.length > 20;
  onTestFinished(() => {
    users.has = has;
  });
  issuer.tokenRequests.splice(0);
  await ada.run("look");
  expect(issuer.tokenRequests).toMatchObject([{ grant_type: "refresh_token", status: 200 }]);
  expect(calendar.calls).toHaveLength(1);
  // A call that is refused with a new token as well fails.
  calendar.state.refusesCalls = true;
  await ada.run("look");
  expect(issuer.tokenRequests).toHaveLength(2);
  expect(await ada.messages()).toContain("is not connected. It refuses the token.");
});

test("a token that is refused permanently fails the call with a readable error, even if the user has approved", async () => {
  const calendar = await calendarServer(new Map([["token-of-ada", "ada"]]));
  const { as } = await serve(calendar.url, (text) => (text.includes("look") ? list : { say: "done" }));
  const ada = as("ada");
  await ada.connect("token-of-ada");
  expect(await ada.tools()).toContain("mcp__calendar__list");
  calendar.state.refuses = () => true;
  await ada.run("look");
  expect(await ada.interrupts()).toMatchObject([{ kind: "connect" }]);
  await ada.answer("approve");
  expect(await ada.interrupts()).toEqual([]);
  expect(await ada.messages()).toContain("is not connected");
  expect(calendar.calls).toEqual([]);
  expect(await ada.tools()).toEqual(["mcp__calendar__connect"]);
  calendar.state.refuses = () => false;
  expect(await ada.tools()).toContain("mcp__calendar__list");
});

test("after an account is replaced, its new token and tools are used immediately", async () => {
  const calendar = await calendarServer(
    new Map([
      ["old-token", "ada's old account"],
      ["new-token", "ada's new account"],
    ]),
  );
  const { as } = await serve(calendar.url, (text) => (text.includes("look") ? list : { say: "done" }));
  const ada = as("ada");
  await ada.connect("old-token");
  await ada.run("look");
  await ada.forget();
  await ada.connect("new-token");
  await ada.run("look");
  expect(calendar.calls.map(({ user }) => user)).toEqual(["ada's old account", "ada's new account"]);
});

test("a token that was refused without an open connection is renewed before the tools are listed", async () => {
  const issuer = await authorizationServer("http://127.0.0.1/mcp");
  const { access_token, refresh_token } = await issuer.grant();
  const users = new Map<string, string>();
  users.has = (token) => token !== access_token && token.length > 20;
  const calendar = await calendarServer(users);
  const { as } = await serve(calendar.url, [{ say: "done" }]);
  const ada = as("ada");
  await ada.put({
    ...{ type: "mcp_oauth", mcp_server_url: calendar.url, access_token },
    refresh: {
      ...{ client_id: CLIENT.client_id, refresh_token, token_endpoint: `${issuer.url}/token` },
      token_endpoint_auth: { type: "client_secret_basic", client_secret: CLIENT.client_secret },
    },
  });
  expect(await ada.tools()).toContain("mcp__calendar__list");
});
