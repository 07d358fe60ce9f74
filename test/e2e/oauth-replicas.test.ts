// Accounts that people connect in a browser, where several servers share a store.

import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import {
  type AuthorizationServer,
  authorizationServer,
  newBrowser,
} from "../support/authorization-server.ts";
import { connectAt, oauthMcpServer } from "../support/connecting.ts";
import { needing } from "../support/needing.ts";
import { serving, skein } from "../support/process.ts";
import { settingsIn } from "../support/replicas.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { USUAL_STORES } from "../support/shared-stores.ts";

/** The address of the load balancer in front of the servers. */
const PUBLIC = "https://skein.example.com";
const HEADERS = { "x-skein-tenant": "acme", "x-skein-user": "ada", "x-skein-scopes": "read,run" };

const agentsOf = (url: string, model: string) => `
mcp_servers:
  calendar: { url: "${url}", per: user, auth: { oauth: {} }, trust_annotations: true }
agents:
  assistant: { model: "${model}", tools: ["mcp__calendar__*"], hooks: { todos: false }, permissions: { mode: bypass } }
`;

const settingsOf = () => ({
  auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
  http_tools: { allow: "127.0.0.1" },
  public_url: PUBLIC,
  vault: { key: randomBytes(32).toString("base64") },
});

const ask = { call: [{ tool: "mcp__calendar__connect", args: {} }] };
const list = { call: [{ tool: "mcp__calendar__list", args: {} }] };
const script = ({ messages }: { messages: readonly unknown[] }) => {
  const text = JSON.stringify(messages.at(-1));
  return text.includes("look") ? ask : text.includes("are now available") ? list : { say: "done" };
};

const clientAt = (baseUrl: string) => createClient({ baseUrl, headers: HEADERS });

/** A browser that reaches the server at `url` under the public address. */
function browserAt(url: string) {
  const browser = newBrowser();
  browser.servers.set(PUBLIC, url);
  return browser;
}

/** A run asks at one server, which then ends; the person agrees at another one. */
async function consentElsewhere(
  issuer: AuthorizationServer,
  config: object,
  dirs: readonly (string | undefined)[],
) {
  const calendar = await oauthMcpServer(issuer);
  const agents = agentsOf(calendar.url, "scripted:test");
  const start = (dir: string | undefined) =>
    startServer({ agents, config, script: script as never, ...(dir === undefined ? {} : { dir }) });
  const first = await start(dirs[0]);
  for await (const _ of clientAt(first.url).run("t", { input: "look" }));
  const [asked] = await clientAt(first.url).interrupts("t");
  await first.app.close();
  const second = await start(dirs[1]);
  const client = clientAt(second.url);
  expect((await connectAt(asked?.url ?? "", browserAt(second.url))).text).toContain(
    "The account is connected",
  );
  const messages = async () => JSON.stringify(await client.threads.messages("t"));
  await expect.poll(messages).toContain("the calendar of ada");
  expect(await client.interrupts("t")).toEqual([]);
}

test("a consent after a restart continues the run, with SQLite", async () => {
  const dir = await temporaryFolder();
  await consentElsewhere(await authorizationServer(), { ...settingsOf(), store: "sqlite" }, [dir, dir]);
});

for (const { start, program } of USUAL_STORES) {
  const shared = await start();
  afterAll(() => shared?.close());
  const { test: withStore } = needing(shared, program);
  const configOf = async () => {
    if (!shared) throw new Error("There was a store a moment ago.");
    return { ...settingsOf(), store: shared.kind, [shared.kind]: { url: await shared.database() } };
  };

  withStore(`a consent at another replica continues the run, with ${program}`, async () => {
    await consentElsewhere(await authorizationServer(), await configOf(), [undefined, undefined]);
  });

  withStore(`replicas on one ${program} register once at an authorization server`, async () => {
    const issuer = await authorizationServer();
    const { url } = await oauthMcpServer(issuer);
    const config = await configOf();
    const options = { agents: agentsOf(url, "scripted:test"), config, script: script as never };
    const servers = [await startServer(options), await startServer(options), await startServer(options)];
    const addresses = servers.flatMap((server) => [server, server].map((each) => clientAt(each.url)));
    await Promise.all(addresses.map((client) => client.connections.authorize("calendar")));
    expect(issuer.registrations).toHaveLength(1);
  });

  withStore(`thirty requests to three processes on one ${program} renew a token once`, async () => {
    const issuer = await authorizationServer();
    const { url } = await oauthMcpServer(issuer);
    const dir = await temporaryFolder();
    await writeFile(join(dir, "server.yaml"), JSON.stringify(await configOf()));
    await writeFile(join(dir, "script.yaml"), "- { say: ok }");
    await writeFile(join(dir, "agents.yaml"), agentsOf(url, `scripted:${join(dir, "script.yaml")}`));
    const servers = await Promise.all([1, 2, 3].map(() => serving(skein(["serve"], settingsIn(dir)))));
    const clients = servers.map((server) => clientAt(server.url));
    const toolsOf = async (client: ReturnType<typeof clientAt>) =>
      (await client.agents.tools("assistant")).length;
    const [first] = clients;
    issuer.state.lifetime = 2;
    const address = (await first?.connections.authorize("calendar"))?.url ?? "";
    expect((await connectAt(address, browserAt(servers[0]?.url ?? ""))).status).toBe(200);
    issuer.state.lifetime = 600;
    const isOver = async () =>
      Date.parse((await first?.connections.get("calendar"))?.expires_at ?? "") < Date.now();
    await expect.poll(isOver).toBe(true);
    issuer.tokenRequests.splice(0);
    const counts = await Promise.all(
      clients.flatMap((client) => Array.from({ length: 10 }, () => toolsOf(client))),
    );
    expect(counts).toEqual(Array(30).fill(3));
    expect(issuer.tokenRequests).toEqual([{ grant_type: "refresh_token", status: 200 }]);
  });
}
