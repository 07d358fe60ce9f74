// Servers that are killed when the vault has the tokens of a person, and the runs that wait for them do not continue yet.

import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import {
  type AuthorizationServer,
  authorizationServer,
  newBrowser,
} from "../support/authorization-server.ts";
import { connectAt, type OAuthMcpServer, oauthMcpServer } from "../support/connecting.ts";
import { needing } from "../support/needing.ts";
import { killed, type ServerProcess, serving, skein } from "../support/process.ts";
import { settingsIn } from "../support/replicas.ts";
import { temporaryFolder } from "../support/server.ts";
import { SHARED_STORES } from "../support/shared-stores.ts";

/** The address of the load balancer in front of the servers. */
const PUBLIC = "https://skein.example.com";
const HEADERS = { "x-skein-tenant": "acme", "x-skein-user": "ada", "x-skein-scopes": "read,run" };

/** `assistant` asks for the account, then uses it. `holder` works until it is cancelled. */
const SCRIPTS = {
  assistant: [
    { call: [{ tool: "mcp__calendar__connect" }] },
    { call: [{ tool: "mcp__calendar__list" }] },
    { say: "done" },
  ],
  holder: [{ say: "never", delay_ms: 3_600_000 }],
};

interface Deployment {
  readonly issuer: AuthorizationServer;
  readonly calendar: OAuthMcpServer;
  readonly dir: string;
  start(): Promise<ServerProcess>;
}

async function deployment(config: object): Promise<Deployment> {
  const issuer = await authorizationServer();
  const calendar = await oauthMcpServer(issuer);
  const dir = await temporaryFolder();
  const settings = {
    auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
    http_tools: { allow: "127.0.0.1" },
    public_url: PUBLIC,
    vault: { key: randomBytes(32).toString("base64") },
    ...config,
  };
  await writeFile(join(dir, "server.yaml"), JSON.stringify(settings));
  const agents = Object.entries(SCRIPTS).map(async ([name, script]) => {
    const file = join(dir, `${name}.yaml`);
    await writeFile(file, JSON.stringify(script));
    const tools = name === "assistant" ? ["mcp__calendar__*"] : [];
    const keys = { tools, hooks: { todos: false }, permissions: { mode: "bypass" } };
    return [name, { model: `scripted:${file}`, ...keys }] as const;
  });
  const mcp_servers = {
    calendar: { url: calendar.url, per: "user", auth: { oauth: {} }, trust_annotations: true },
  };
  const file = { mcp_servers, agents: Object.fromEntries(await Promise.all(agents)) };
  await writeFile(join(dir, "agents.yaml"), JSON.stringify(file));
  return { issuer, calendar, dir, start: () => serving(skein(["serve"], settingsIn(dir))) };
}

const clientAt = ({ url }: ServerProcess) => createClient({ baseUrl: url, headers: HEADERS });
type Client = ReturnType<typeof clientAt>;

/** A browser that reaches the server under the public address. */
function browserAt({ url }: ServerProcess) {
  const browser = newBrowser();
  browser.servers.set(PUBLIC, url);
  return browser;
}

/** A run that waits for the account. Returns the address that it shows. */
async function waitingRun(client: Client): Promise<string> {
  for await (const _ of client.run("t", { agent: "assistant", input: "look" }));
  const [asked] = await client.interrupts("t");
  return asked?.url ?? "";
}

async function expectOneRunMore(client: Client, { calls }: OAuthMcpServer) {
  const statuses = async () => (await client.runs.of("t", { limit: 10 })).items.map(({ status }) => status);
  await expect.poll(statuses).toEqual(["success", "interrupted"]);
  expect(calls).toEqual([{ user: "ada", tool: "list" }]);
  expect(await client.interrupts("t")).toEqual([]);
}

/** Changes the file of a server that is not there. */
function changing(dir: string, sql: string) {
  const file = new DatabaseSync(join(dir, "data", "skein.db"), { timeout: 60_000 });
  file.exec(sql);
  file.close();
}

/** What an export of the user has of their requests to connect accounts. */
async function requestsAt({ url }: ServerProcess): Promise<string[]> {
  const headers = { ...HEADERS, "x-skein-scopes": "read,admin" };
  const answer = await fetch(`${url}/admin/tenants/acme/users/ada/export`, { headers });
  expect(answer.status).toBe(200);
  return (await answer.text()).split("\n").filter((line) => line.includes(`"type":"connection_request"`));
}

// The step after the write to the vault: the request is written again, without the tokens.
const STOPS = `
  CREATE TRIGGER stops BEFORE UPDATE ON documents
  WHEN NEW.body LIKE '%"grant":{"at":%' AND NEW.body NOT LIKE '%"grant":{"at":%,"sealed":%'
  BEGIN SELECT RAISE(ABORT, 'stopped'); END`;
// The server would wait until the claim of the process before it has ended.
const IS_DUE = `
  DROP TRIGGER IF EXISTS stops;
  UPDATE documents SET due = 0 WHERE collection LIKE '["connects"%' AND due IS NOT NULL;
  UPDATE document_turns SET at = 0 WHERE kind = 'connects';`;

test("a server that dies right after it has stored the tokens continues the run at its next start, with the tokens of today", async () => {
  const parts = await deployment({ store: "sqlite" });
  const { issuer, calendar, dir } = parts;
  // It makes the file.
  await killed(await parts.start());
  changing(dir, STOPS);
  const first = await parts.start();
  const client = clientAt(first);
  const address = await waitingRun(client);
  issuer.state.lifetime = 2;
  expect((await connectAt(address, browserAt(first))).status).toBeGreaterThanOrEqual(500);
  issuer.state.lifetime = 600;
  const ends = async () => Date.parse((await client.connections.get("calendar")).expires_at ?? "");
  await expect.poll(async () => (await ends()) < Date.now()).toBe(true);
  // Renews them: those of the consent cannot be used any more.
  expect(await client.agents.tools("assistant")).toHaveLength(3);
  expect(await ends()).toBeGreaterThan(Date.now());
  expect(await client.interrupts("t")).toHaveLength(1);
  await killed(first);
  changing(dir, IS_DUE);
  await expectOneRunMore(clientAt(await parts.start()), calendar);
});

// The step before: the vault is written.
const STOPS_BEFORE = `
  CREATE TRIGGER stops BEFORE UPDATE ON documents WHEN NEW.collection LIKE '["connections"%'
  BEGIN SELECT RAISE(ABORT, 'stopped'); END`;

/** The connection that a process writes after it was held up. */
const IS_LATE = `CREATE TABLE late AS SELECT * FROM documents WHERE collection LIKE '["connections"%'`;
const WRITES_LATE = "INSERT INTO documents SELECT * FROM late; DROP TABLE late";

test.each([
  ["has stored the tokens of an earlier consent and died", { stops: STOPS, revoked: 1, isLate: false }],
  [
    "has received the tokens of an earlier consent and died",
    { stops: STOPS_BEFORE, revoked: 2, isLate: false },
  ],
  ["stores the tokens of an earlier consent afterwards and dies", { stops: STOPS, revoked: 1, isLate: true }],
])(
  "an account that its user deletes stays deleted when a server %s",
  async (_, { stops, revoked, isLate }) => {
    const parts = await deployment({ store: "sqlite" });
    const { issuer, dir } = parts;
    const first = await parts.start();
    const connecting = async (server: ServerProcess) => {
      const { url } = await clientAt(server).connections.authorize("calendar");
      return connectAt(url, browserAt(server));
    };
    expect((await connecting(first)).status).toBe(200);
    await killed(first);
    changing(dir, stops);
    const second = await parts.start();
    expect((await connecting(second)).status).toBeGreaterThanOrEqual(500);
    await killed(second);
    changing(dir, `DROP TRIGGER stops; ${isLate ? IS_LATE : ""}`);
    const third = await parts.start();
    expect(await clientAt(third).connections.delete("calendar")).toEqual({ is_revoked: true });
    expect(issuer.revocations).toHaveLength(revoked);
    await killed(third);
    changing(dir, `${IS_DUE} ${isLate ? WRITES_LATE : ""}`);
    const fourth = await parts.start();
    await expect.poll(() => requestsAt(fourth)).toEqual([]);
    expect((await clientAt(fourth).connections.list()).items).toEqual([]);
  },
);

/** The server would look at the connection within a minute. */
const IS_SEEN = `
  UPDATE documents SET due = 0 WHERE collection LIKE '["connections"%';
  UPDATE document_turns SET at = 0 WHERE kind = 'connections';`;

test("an account that its user deletes stays deleted when a server stores the tokens of an earlier consent long afterwards and dies", async () => {
  const parts = await deployment({ store: "sqlite" });
  const { issuer, dir } = parts;
  await killed(await parts.start());
  changing(dir, STOPS);
  const first = await parts.start();
  const { url } = await clientAt(first).connections.authorize("calendar");
  expect((await connectAt(url, browserAt(first))).status).toBeGreaterThanOrEqual(500);
  await killed(first);
  changing(dir, `DROP TRIGGER stops; ${IS_LATE}`);
  const second = await parts.start();
  expect(await clientAt(second).connections.delete("calendar")).toEqual({ is_revoked: true });
  await killed(second);
  changing(dir, IS_DUE);
  const third = await parts.start();
  await expect.poll(() => requestsAt(third)).toEqual([]);
  await killed(third);
  // The claim of the request has ended, and the request is deleted.
  changing(dir, `${WRITES_LATE}; ${IS_SEEN}`);
  const fourth = await parts.start();
  await expect.poll(async () => (await clientAt(fourth).connections.list()).items).toEqual([]);
  expect(issuer.revocations).toHaveLength(1);
});

// The user has as many runs as they may: the run that waits is tried again.
const FULL = { quotas: { user: { concurrent_runs: 1 } } };

test("a consent is kept until its runs continue, no matter how many addresses its user asks for", async () => {
  const parts = await deployment({ store: "sqlite", ...FULL });
  const one = await parts.start();
  const client = clientAt(one);
  const address = await waitingRun(client);
  const holding = await client.start("held", { agent: "holder", input: "work" });
  expect((await connectAt(address, browserAt(one))).text).toContain("The account is connected");
  // As many as a user can have.
  for (let asked = 0; asked < 50; asked++) await client.connections.authorize("calendar");
  await client.stop("held", holding.id, "cancel");
  await expectOneRunMore(client, parts.calendar);
});

/** Returns the server at which the run must continue. */
async function killBetween(parts: Deployment, another: (one: ServerProcess) => Promise<ServerProcess>) {
  const one = await parts.start();
  const address = await waitingRun(clientAt(one));
  const holding = await clientAt(one).start("held", { agent: "holder", input: "work" });
  expect((await connectAt(address, browserAt(one))).text).toContain("The account is connected");
  expect(await clientAt(one).interrupts("t")).toHaveLength(1);
  const other = clientAt(await another(one));
  expect(await other.connections.list()).toMatchObject({ items: [{ id: "calendar" }] });
  await other.stop("held", holding.id, "cancel");
  await expectOneRunMore(other, parts.calendar);
}

test("a server that dies before it has continued the runs continues them at its next start, with SQLite", async () => {
  const parts = await deployment({ store: "sqlite", ...FULL });
  await killBetween(parts, async (one) => {
    await killed(one);
    return parts.start();
  });
});

for (const { start, program } of SHARED_STORES) {
  const shared = await start();
  afterAll(() => shared?.close());

  needing(shared, program).test(
    `a server that dies before it has continued the runs leaves them to another replica, with ${program}`,
    async () => {
      if (!shared) throw new Error("There was a store a moment ago.");
      const store = { store: shared.kind, [shared.kind]: { url: await shared.database(), lease: "2s" } };
      const parts = await deployment({ ...store, ...FULL });
      const other = await parts.start();
      await killBetween(parts, async (one) => {
        await killed(one);
        return other;
      });
    },
  );
}
