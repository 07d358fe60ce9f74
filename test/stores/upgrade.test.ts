// What version 0.1.0 wrote is there after an upgrade: schema-5.sql, keys-1.sql, usage-1.sql and redis-0.1.0.json are its
// files, made by one and the same sequence of calls.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { keptOverrides } from "../../src/agents/overrides.ts";
import { createLedger } from "../../src/backends/ledger.ts";
import type { Documents } from "../../src/core/documents.ts";
import { createApiKeys } from "../../src/http/auth/api-keys.ts";
import type { AllStores } from "../../src/stores/all-stores.ts";
import { createRedisStores, openRedisKeys } from "../../src/stores/redis/index.ts";
import { createSqliteStores } from "../../src/stores/sqlite/index.ts";
import { openSqliteKeyFile } from "../../src/stores/sqlite/key-file.ts";
import { createHttpToolStore } from "../../src/tools/http/store.ts";
import { needing } from "../support/needing.ts";
import { startRedis } from "../support/redis.ts";
import { temporaryFolder } from "../support/server.ts";
import { ADA } from "./fixture.ts";

const MIB = 1024 * 1024;

const START = Date.parse("2026-11-21T10:00:00.000Z");
const MINUTE = 60_000;
const at = (ms: number) => new Date(START + ms).toISOString();
const fixture = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8");

async function expectStores(stores: AllStores, setTime: (ms: number) => void): Promise<void> {
  const { documents, items, quotas } = stores;
  const tools = createHttpToolStore(documents, MIB);
  expect((await tools.list("acme")).map(({ name }) => name)).toEqual(["forecast", "weather"]);
  expect(await tools.get("acme", "weather")).toMatchObject({
    ...{ description: "The weather, now", headers: { "x-key": "a b" }, secret: "whsec_c2VjcmV0" },
  });
  expect(await tools.list("other")).toMatchObject([{ description: "of the other tenant" }]);
  expect(await tools.delete("acme", "forecast")).toBe(true);

  const first = { key: "first", value: { text: "one \ud800 two" }, version: 1 };
  const plan = { key: "plan", value: ["a", "b"], version: 2 };
  const places = [
    { of: { thread: "t" }, ms: 0 },
    { of: { agent: "helper" }, ms: 1000 },
  ];
  for (const { of, ms } of places) {
    const shelf = { owner: ADA, of, kind: "notes" } as const;
    expect(await items.list(shelf)).toEqual([
      { ...plan, updated_at: at(ms + 1000) },
      { ...first, updated_at: at(ms) },
    ]);
    expect(await items.put(shelf, { key: "plan", value: 1, version: 1 })).toBeUndefined();
    expect(await items.put(shelf, { key: "plan", value: 1, version: 2 })).toMatchObject({ version: 3 });
  }
  expect(await keptOverrides(items, ADA, "helper")).toEqual({ model: "x:y" });
  await stores.threads.delete(ADA, "t");
  expect(await items.list({ owner: ADA, of: { thread: "t" }, kind: "notes" })).toEqual([]);

  const ledger = createLedger(documents);
  const keep = { running: 15 * MINUTE, container: 60 * MINUTE, files: null };
  for (const state of ["running", "ending", "stopped", "removed"] as const)
    expect(await ledger.get(`sb_${state}`)).toEqual({
      ...{
        id: `sb_${state}`,
        owner: ADA,
        name: "work",
        engine: "default",
        keep,
        state,
        used_at: START + 2000,
      },
      revision: expect.any(String),
    });
  const more = { id: "sb_new", owner: ADA, name: "work", engine: "default", keep };
  expect(await ledger.enter(more, { total: 10, tenant: 2 })).toBe("tenant");
  expect(await ledger.enter(more, { total: 3, tenant: 3 })).toBe("total");
  expect((await ledger.idle(0, 10)).map(({ id }) => id)).toEqual(["sb_running", "sb_other"]);

  expect((await quotas.accounts(ADA)).user).toEqual({
    ...{ day: { tokens: 120, cost: 7 }, month: { tokens: 120, cost: 7 } },
    reserved: { tokens: 50, cost: 5 },
  });
  expect(await quotas.held(ADA)).toMatchObject({ tenant: { runs: 1, threads: 1 }, user: { threads: 0 } });
  expect(await quotas.usage(ADA, 1)).toMatchObject([{ agent: "helper", model: "a:b", calls: 1, cost: 7 }]);
  // Counted from the upgrade on.
  expect(await quotas.tenantUsage("acme", 1)).toEqual({ rows: [], users: [] });

  setTime(30 * MINUTE);
  expect((await ledger.due(10)).map(({ id }) => id)).toEqual(["sb_ending", "sb_other", "sb_running"]);
}

async function expectKeys(documents: Documents): Promise<void> {
  const keys = createApiKeys(documents);
  const about = { user: "ada", scopes: ["read", "run"] };
  const list = [
    { ...about, id: "3".repeat(22), tenant: "acme", name: "key 3", created_at: at(5000) },
    {
      ...{ ...about, id: "2".repeat(22), tenant: "other", name: "key 2", created_at: at(4000) },
      expires_at: "2031-01-31T00:00:00.000Z",
    },
    {
      ...{ ...about, id: "1".repeat(22), tenant: "acme", name: "key 1", created_at: at(3000) },
      revoked_at: at(6000),
    },
  ];
  expect(await keys.list()).toEqual(list);
  expect(await keys.find("3".repeat(22))).toEqual({ ...list[0], hash: "hash3" });
  expect(await keys.revoke("3".repeat(22))).toHaveProperty("revoked_at");
}

test("a database of version 0.1.0 keeps tools, items, overrides, sandboxes and quotas, and a copy of itself", async () => {
  const dir = await temporaryFolder();
  const made = { "skein.db": "schema-5.sql", "usage.db": "usage-1.sql" };
  for (const [name, sql] of Object.entries(made)) {
    const file = new DatabaseSync(join(dir, name));
    file.exec(fixture(sql));
    file.close();
  }
  let time = START + 6000;
  const stores = createSqliteStores({ dataDir: dir, now: () => time });
  await expectStores(stores, (ms) => {
    time = START + ms;
  });
  await stores.close();
  const copy = new DatabaseSync(join(dir, "skein.db.v5"), { readOnly: true });
  expect(copy.prepare("SELECT count(*) AS n FROM http_tools").get()).toEqual({ n: 3 });
  copy.close();
});

test("API keys of version 0.1.0 keep working, and a copy of their file stays", async () => {
  const dir = await temporaryFolder();
  const file = new DatabaseSync(join(dir, "keys.db"));
  file.exec(fixture("keys-1.sql"));
  file.close();
  const { documents, close } = openSqliteKeyFile(dir);
  await expectKeys(documents);
  close();
  expect(existsSync(join(dir, "keys.db.v1"))).toBe(true);
});

test("the copy of an old database is whole though the first start was killed in the middle of it, and only its owner ever reads it", async () => {
  const dir = await temporaryFolder();
  const path = join(dir, "skein.db");
  const rows = 40_000;
  const old = new DatabaseSync(path);
  old.exec(fixture("schema-5.sql"));
  old.exec(`INSERT INTO messages (owner, thread_id, position, id, body)
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows - 1})
    SELECT '["acme","ada"]', 't', i, 'm' || i, hex(zeroblob(1024)) FROM n`);
  old.close();

  const writer = fileURLToPath(new URL("endless-writer.ts", import.meta.url));
  const child = spawn(process.execPath, [writer, path], { stdio: "ignore" });
  const exited = once(child, "exit");
  const copies = () => readdirSync(dir).filter((name) => name.startsWith("skein.db.v5"));
  while (!copies().some((name) => statSync(join(dir, name)).size > 0) && child.exitCode === null)
    await setImmediate();
  child.kill("SIGKILL");
  await exited;
  for (const name of copies()) expect(statSync(join(dir, name)).mode & 0o077).toBe(0);

  await createSqliteStores({ path }).close();
  expect(copies()).toEqual(["skein.db.v5"]);
  expect(statSync(`${path}.v5`).mode & 0o077).toBe(0);
  const copy = new DatabaseSync(`${path}.v5`, { readOnly: true });
  expect(copy.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  expect(copy.prepare("SELECT count(*) AS n FROM messages WHERE id LIKE 'm%'").get()).toEqual({ n: rows });
  copy.close();
});

const redis = await startRedis();
afterAll(() => redis?.close());

needing(redis, "redis-server").test("a Redis of version 0.1.0 keeps all of it", async () => {
  for (const command of JSON.parse(fixture("redis-0.1.0.json")) as string[][]) redis?.ask(...command);
  let time = START + 6000;
  const now = () => time;
  for (const attempt of ["first", "second"]) {
    const { documents, close } = await openRedisKeys(redis?.url ?? "", now);
    if (attempt === "first") await expectKeys(documents);
    else expect(await createApiKeys(documents).find("3".repeat(22))).toHaveProperty("revoked_at");
    close();
  }
  const stores = await createRedisStores({ url: redis?.url ?? "", now });
  await expectStores(stores, (ms) => {
    time = START + ms;
  });
  await stores.close();
});

needing(redis, "redis-server").test(
  "keys that a process of version 0.1.0 makes or revokes meanwhile are known with the next start",
  async () => {
    redis?.ask("FLUSHALL");
    const commands = (JSON.parse(fixture("redis-0.1.0.json")) as string[][]).filter(([, key]) =>
      key?.startsWith("sk:{keys}:"),
    );
    const open = () => openRedisKeys(redis?.url ?? "");
    const [third, second] = ["3".repeat(22), "2".repeat(22)];
    for (const command of commands) redis?.ask(...command);
    redis?.ask("ZREM", "sk:{keys}:all", third);
    (await open()).close();
    redis?.ask("ZADD", "sk:{keys}:all", String(START), third);
    redis?.ask("HSETNX", `sk:{keys}:key:${second}`, "revoked", String(START));
    const { documents, close } = await open();
    const keys = createApiKeys(documents);
    expect(await keys.find(third)).toMatchObject({ name: "key 3" });
    expect(await keys.find(second)).toMatchObject({ name: "key 2", hash: "hash2", revoked_at: at(0) });
    close();
  },
);
