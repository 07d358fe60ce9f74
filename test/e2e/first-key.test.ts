// BOOTSTRAP_API_KEY: the key with which a deployment begins.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { newApiKey } from "../../src/server/auth/api-keys.ts";
import { needing } from "../support/needing.ts";
import { completeLog, serveWith, skein } from "../support/process.ts";
import { startRedis } from "../support/redis.ts";
import { temporaryFolder } from "../support/server.ts";

const redis = await startRedis();
afterAll(() => redis?.close());

const me = async (url: string, key: string) => {
  const response = await fetch(`${url}/me`, { headers: { authorization: `Bearer ${key}` } });
  return { status: response.status, ...((await response.json()) as object) };
};
const serverWith = (env: Record<string, string>, dir?: string) =>
  serveWith({}, { env: { AUTH: "api_key", ALLOW_LOCAL_BACKEND: "1", ...env }, ...(dir ? { dir } : {}) });
const ADMIN = { status: 200, tenant: "default", user: "admin" };

describe("on SQLite", () => {
  test("the key works on the server's first start and on later ones", async () => {
    const { key } = newApiKey();
    const first = await serverWith({ BOOTSTRAP_API_KEY: key });
    expect(await me(first.url, key)).toMatchObject(ADMIN);
    expect(await me(first.url, newApiKey().key)).toMatchObject({ status: 401 });
    expect(await completeLog(first)).not.toContain(key);
    const second = await serverWith({ BOOTSTRAP_API_KEY: key }, first.dir);
    expect(await me(second.url, key)).toMatchObject(ADMIN);
    const stored = await readFile(join(first.dir, "data/keys.db"), "latin1").catch(() => "");
    expect(stored).not.toContain(key.slice(-43));
  });

  test("a revoked key remains revoked when the server starts again", async () => {
    const { key } = newApiKey();
    const { dir, child, exited } = await serverWith({ BOOTSTRAP_API_KEY: key });
    child.kill("SIGTERM");
    await exited;
    const settings = { DATA_DIR: join(dir, "data"), AUTH: "api_key" };
    expect(await skein(["keys", "revoke", key], settings).exited).toBe(0);
    const second = await serverWith({ BOOTSTRAP_API_KEY: key }, dir);
    expect(await me(second.url, key)).toMatchObject({ status: 401 });
    await expect.poll(() => second.output()).toContain("is revoked and remains revoked");
  });

  test("a key with another one's id is refused", async () => {
    const { key } = newApiKey();
    const { dir, child, exited } = await serverWith({ BOOTSTRAP_API_KEY: key });
    child.kill("SIGTERM");
    await exited;
    const other = key.slice(0, -43) + newApiKey().key.slice(-43);
    await expect(serverWith({ BOOTSTRAP_API_KEY: other }, dir)).rejects.toThrow("the id of another key");
  });
});

needing(redis, "redis-server").test("two replicas that start at once store the key once", async () => {
  const { key } = newApiKey();
  const env = { STORE: "redis", REDIS_URL: redis?.url ?? "", BOOTSTRAP_API_KEY: key };
  const replicas = await Promise.all([serverWith(env), serverWith(env)]);
  for (const { url } of replicas) expect(await me(url, key)).toMatchObject(ADMIN);
  const logs = await Promise.all(replicas.map(completeLog));
  expect(logs.filter((log) => log.includes("BOOTSTRAP_API_KEY was created"))).toHaveLength(1);
});

test.each([
  ["a word", "admin"],
  ["a key of another form", "a".repeat(69)],
  ["a secret of few different characters", `sk_${"b".repeat(22)}_${"ab".repeat(21)}a`],
])("%s is refused as the first key, and not repeated", async (_, key) => {
  const server = skein(["serve"], {
    AUTH: "api_key",
    BOOTSTRAP_API_KEY: key,
    DATA_DIR: await temporaryFolder(),
  });
  expect(await server.exited).toBe(1);
  expect(server.output()).toMatch(/BOOTSTRAP_API_KEY.*skein keys generate/);
  if (key !== "admin") expect(server.output()).not.toContain(key);
});

test("the key is refused if the server does not use keys", async () => {
  const env = { AUTH: "none", BOOTSTRAP_API_KEY: newApiKey().key, DATA_DIR: await temporaryFolder() };
  const server = skein(["serve"], env);
  expect(await server.exited).toBe(1);
  expect(server.output()).toContain("requires AUTH=api_key, but AUTH is none");
});

test("`skein keys generate` prints a key that a server accepts", async () => {
  const generated = skein(["keys", "generate"], {});
  expect(await generated.exited).toBe(0);
  const [key = ""] = /sk_\S+/.exec(generated.output()) ?? [];
  const { url } = await serverWith({ BOOTSTRAP_API_KEY: key });
  expect(await me(url, key)).toMatchObject(ADMIN);
});
