// Admins manage the users of their tenant, operators those of all: over HTTP, on each store.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import type { Script } from "../../src/agent/models/scripted.ts";
import { createClient } from "../../src/client/client.ts";
import { shelvesOf } from "../../src/engine/admin/delete-user.ts";
import { listSandboxes } from "../../src/engine/admin/lists.ts";
import { overUsers, type Reach } from "../../src/engine/admin/reach.ts";
import type { SandboxEntry } from "../../src/engine/admin/services.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { AUDIENCE, ISSUER, issuer, token } from "../server/auth/issuer.ts";
import { asUser, BEHIND_GATEWAY } from "../support/gateway.ts";
import { startServer } from "../support/server.ts";
import { HELPED } from "../support/team.ts";

type Who = ReturnType<typeof asUser>;
const user = (name: string, tenant = "acme") => asUser(name, "read,run,tools", tenant);
const [ADA, BOB, EVE] = [user("ada"), user("bob/../x"), user("eve", "other")];
const ADMIN = asUser("root", "admin");
const STRANGER = asUser("eve", "admin", "other");
const OPERATOR = asUser("ops", "operator", "house");

const script: Script = ({ messages }) =>
  JSON.stringify(messages.at(-1)).includes("slowly") ? { say: "a b c", delay_ms: 60_000 } : { say: "done" };

async function serve(more: object = {}) {
  const log: string[] = [];
  const { url, dir } = await startServer({
    config: {
      ...BEHIND_GATEWAY,
      auth: { ...BEHIND_GATEWAY.auth, external_operators: true },
      ...more,
    },
    script,
    logger: pino({ level: "info" }, { write: (line: string) => log.push(line) }),
  });
  const as = (who: Who) => createClient({ baseUrl: url, headers: who });
  return { url, dir, log, as };
}

/** The items of all pages. */
async function inPages<T>(
  limit: number,
  list: (page: {
    limit: number;
    cursor?: string;
  }) => Promise<{ items: readonly T[]; next_cursor?: string | undefined }>,
): Promise<T[]> {
  const items: T[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await list({ limit, ...(cursor === undefined ? {} : { cursor }) });
    items.push(...page.items);
    cursor = page.next_cursor;
    if (cursor === undefined) return items;
  }
}

const finished = async (client: ReturnType<typeof createClient>, thread: string, input = "go") => {
  const { id } = await client.start(thread, { input });
  for await (const _ of client.runs.events(thread, id));
  return id;
};

test("an admin sees all users of the tenant and no other tenant, an operator sees all", async () => {
  const { as } = await serve();
  for (const who of [ADA, BOB, EVE]) await finished(as(who), "t");
  const slow = await as(ADA).start("busy", { input: "slowly" });
  const users = (items: readonly { tenant: string; user: string }[]) =>
    items.map(({ tenant, user }) => `${tenant} ${user}`);

  const admin = as(ADMIN).admin;
  expect((await admin.tenants()).items).toEqual([{ tenant: "acme" }]);
  expect(users((await admin.users()).items)).toEqual(["acme ada", "acme bob/../x"]);
  expect(users((await admin.runs()).items).sort()).toEqual(["acme ada", "acme ada", "acme bob/../x"]);
  expect((await admin.runs({ status: "running" })).items).toMatchObject([
    { tenant: "acme", user: "ada", id: slow.id, thread_id: "busy" },
  ]);
  for (const list of [admin.users, admin.runs, admin.interrupts, admin.sandboxes, admin.usage])
    expect((await list({ tenant: "other" })).items).toEqual([]);

  const operator = as(OPERATOR).admin;
  expect((await operator.tenants()).items).toEqual([{ tenant: "acme" }, { tenant: "other" }]);
  expect(users((await operator.users()).items)).toEqual(["acme ada", "acme bob/../x", "other eve"]);
  expect(users((await operator.runs({ tenant: "other" })).items)).toEqual(["other eve"]);
  expect(users((await operator.runs({ tenant: "acme", user: "ada" })).items)).toEqual([
    "acme ada",
    "acme ada",
  ]);
  await expect(operator.runs({ user: "ada" })).rejects.toMatchObject({ status: 400 });
});

test("lists across users have pages that contain each item once", async () => {
  const { as } = await serve();
  const ids: string[] = [];
  for (let n = 0; n < 5; n++)
    for (const thread of ["a", "b"]) ids.push(await finished(as(user(`u${n}`, `t${n % 2}`)), thread));
  for (const limit of [1, 3, 4]) {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await as(OPERATOR).admin.runs({ limit, ...(cursor === undefined ? {} : { cursor }) });
      expect(page.items.length).toBeLessThanOrEqual(limit);
      found.push(...page.items.map(({ id }) => id));
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    expect(found.toSorted()).toEqual(ids.toSorted());
  }
});

test("lists of users and tenants have pages that contain each once, however many there are", async () => {
  const { as } = await serve();
  const owners = Array.from({ length: 40 }, (_, n) => ({ user: `u${n}`, tenant: `t${n % 3}` }));
  for (const { user: name, tenant } of owners) await as(user(name, tenant)).threads.create({});
  const { admin } = as(OPERATOR);
  const users = await inPages(16, (page) => admin.users(page));
  expect(users.map(({ tenant, user }) => ({ user, tenant }))).toEqual(
    owners.toSorted((a, b) => (`${a.tenant} ${a.user}` < `${b.tenant} ${b.user}` ? -1 : 1)),
  );
  const tenants = await inPages(1, (page) => admin.tenants(page));
  expect(tenants.map(({ tenant }) => tenant)).toEqual(["t0", "t1", "t2"]);
});

test("a list across users reaches the last of many that have nothing in it", async () => {
  const { owners, threads, close } = createMemoryStores();
  onTestFinished(() => close());
  for (let n = 0; n < 400; n++)
    await threads.create({ tenant: "t", user: `u${n}` }, { id: "a", metadata: {} });
  const read = async ({ user }: { user: string }) => ({ items: user === "u99" ? [{ n: 1 }] : [] });
  expect(await inPages(5, (page) => overUsers(owners, {}, page, read))).toMatchObject([{ user: "u99" }]);
});

test("the list of sandboxes contains only those within reach, by id", async () => {
  const sandbox = (id: string, tenant: string, user: string) => ({ id, owner: { tenant, user } });
  const all = [sandbox("c", "acme", "ada"), sandbox("a", "acme", "bob"), sandbox("b", "other", "ada")];
  const sandboxes = async () => all as unknown as readonly SandboxEntry[];
  const ids = async (reach: Reach) =>
    (await inPages(1, (page) => listSandboxes({ sandboxes }, reach, page))).map(({ id }) => id);
  expect(await ids({})).toEqual(["a", "b", "c"]);
  expect(await ids({ tenant: "acme" })).toEqual(["a", "c"]);
  expect(await ids({ tenant: "acme", user: "ada" })).toEqual(["c"]);
});

test("an admin can stop anyone's run in the tenant only, and the log names the admin", async () => {
  const { as, log } = await serve();
  const run = await as(ADA).start("t", { input: "slowly" });
  const place = { thread_id: "t", run_id: run.id };
  const stranger = as(STRANGER).admin;
  await expect(stranger.stop({ tenant: "acme", user: "ada" }, place)).rejects.toMatchObject({
    status: 404,
  });
  await expect(as(BOB).admin.stop({ tenant: "acme", user: "ada" }, place)).rejects.toMatchObject({
    status: 403,
  });
  expect(await as(ADMIN).admin.stop({ tenant: "acme", user: "ada" }, place)).toMatchObject({
    status: "cancelled",
  });
  expect(log.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({
      admin: { tenant: "acme", user: "root" },
      act: "cancel_run",
      to: { tenant: "acme", user: "ada", thread_id: "t", run_id: run.id },
    }),
  );
});

test("deletes all of a user's data, running or not, and nothing of others", async () => {
  const { as, dir } = await serve();
  const [ada, bob] = [as(ADA), as(BOB)];
  for (const client of [ada, bob]) {
    await finished(client, "t");
    await client.files.write("notes.txt", "mine");
    await client.permissions.addToAgent("assistant", {
      decision: "deny",
      matcher: { tool: "execute" },
    });
  }
  await ada.start("busy", { input: "slowly" });
  await ada.start("busy", { input: "go", on_busy: "enqueue" });
  const workspaces = () => readdirSync(join(dir, "data", "workspaces"));
  expect(workspaces()).toHaveLength(2);

  const admin = as(ADMIN).admin;
  const deleted = await admin.deleteUser({ tenant: "acme", user: "ada" });
  expect(deleted).toEqual({
    ...{ complete: true, runs_cancelled: 2, threads: 2, items: 1, workspaces: 1, keys: 0 },
  });
  expect((await ada.threads.list()).items).toEqual([]);
  expect((await ada.permissions.ofAgent("assistant")).length).toBe(0);
  expect(await ada.files.list()).toEqual([]);
  expect((await admin.runs()).items.map(({ user }) => user)).toEqual(["bob/../x"]);
  expect((await bob.threads.list()).items).toHaveLength(1);
  expect(await bob.permissions.ofAgent("assistant")).toHaveLength(1);
  expect(await (await bob.files.read("notes.txt")).text()).toBe("mine");
  expect(await admin.deleteUser({ tenant: "acme", user: "ada" })).toMatchObject({
    complete: true,
    threads: 0,
  });
});

test("a deletion ends active runs, however many threads there are", async () => {
  const { as } = await serve();
  const ada = as(ADA);
  await Promise.all(Array.from({ length: 60 }, (_, n) => ada.start(`t${n}`, { input: "go" })));
  const deleted = await as(OPERATOR).admin.deleteUser({ tenant: "acme", user: "ada" });
  expect(deleted).toMatchObject({ complete: true, threads: 60 });
  expect((await ada.threads.list()).items).toEqual([]);
});

test("an export contains every message of a user, marks its end, and contains nothing of others", async () => {
  const { as } = await serve();
  await finished(as(ADA), "t", "what ada asked");
  await finished(as(ADA), "u", "and again");
  for (const half of ["first", "second"]) await finished(as(ADA), "u", half + "x".repeat(300_000));
  for (let n = 0; n < 50; n++) await as(ADA).threads.create({});
  await finished(as(BOB), "t", "what bob asked");
  await as(ADA).agents.setOverrides("assistant", { hooks: { todos: false } });
  const text = await (await as(ADMIN).admin.exportUser({ tenant: "acme", user: "ada" })).text();
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const count = (type: string) => lines.filter((line) => line.type === type).length;
  expect(lines[0]).toMatchObject({ type: "export", tenant: "acme", user: "ada" });
  expect([count("thread"), count("message"), count("run"), count("state"), count("item")]).toEqual([
    52, 8, 4, 52, 1,
  ]);
  expect(lines.find(({ type }) => type === "usage")).toMatchObject({ agent: "assistant" });
  expect(lines.at(-1)).toEqual({ type: "end", lines: lines.length - 1 });
  expect(text).toContain("what ada asked");
  expect(text).not.toContain("what bob asked");
  const stranger = as(STRANGER).admin;
  await expect(stranger.exportUser({ tenant: "acme", user: "ada" })).rejects.toMatchObject({
    status: 404,
  });
});

test("the data of a user include what agents keep that the server no longer has", async () => {
  const { items, owners } = createMemoryStores();
  const owner = { tenant: "acme", user: "ada" };
  const shelf = { owner, of: { agent: "former" }, kind: "notes" } as const;
  await items.put(shelf, { key: "k", value: "v" });
  expect(await shelvesOf({ owners, agents: () => [] }, owner)).toEqual([shelf]);
});

test("the data of a user include the threads of subagents", async () => {
  const { url } = await startServer({ ...HELPED, config: BEHIND_GATEWAY });
  const as = (who: Who) => createClient({ baseUrl: url, headers: who });
  await finished(as(ADA), "t");
  const { admin } = as(ADMIN);
  const ada = { tenant: "acme", user: "ada" };
  const text = await (await admin.exportUser(ada)).text();
  expect(text.match(/^{"type":"thread"/gm)).toHaveLength(2);
  expect(await admin.deleteUser(ada)).toMatchObject({ complete: true });
  expect((await admin.users()).items).toEqual([]);
});

test("the issuer of tokens can grant the scope operator only if the settings allow it", async () => {
  const jwt = { jwks_url: (await issuer()).url, issuer: ISSUER, audience: AUDIENCE };
  const headers = { authorization: `Bearer ${await token({ scope: "operator" })}` };
  const statuses = [false, true].map(async (external_operators) => {
    const { url } = await startServer({ config: { auth: { scheme: "jwt", jwt, external_operators } } });
    return (await fetch(`${url}/admin/tenants`, { headers })).status;
  });
  expect(await Promise.all(statuses)).toEqual([403, 200]);
});

test("a gateway can grant the scope operator only if the settings allow it", async () => {
  const { url } = await startServer({ config: BEHIND_GATEWAY });
  const status = async (scopes: string) =>
    (await fetch(`${url}/admin/tenants`, { headers: asUser("ops", scopes) })).status;
  expect(await status("operator")).toBe(403);
  expect(await status("admin")).toBe(200);
});

test("without authentication the local user sees everything", async () => {
  const { url } = await startServer();
  const client = createClient({ baseUrl: url });
  await finished(client, "t");
  expect((await client.admin.users()).items).toMatchObject([{ tenant: "default", user: "default" }]);
  expect((await client.admin.usage()).items).toMatchObject([{ tenant: "default", totals: { calls: 1 } }]);
});
