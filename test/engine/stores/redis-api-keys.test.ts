import { afterAll, expect, test } from "vitest";
import { openRedisKeys } from "../../../src/engine/stores/redis/index.ts";
import { createApiKeys, issueApiKey } from "../../../src/server/auth/api-keys.ts";
import { needing } from "../../support/needing.ts";
import { startRedis } from "../../support/redis.ts";

const redis = await startRedis("--databases", "100");
afterAll(() => redis?.close());

let databases = 0;
const emptyDatabase = () => `${redis?.url}/${databases++}`;

const openKeys = async (url: string, now?: () => number) => {
  const { documents, close } = await openRedisKeys(url, now);
  return { keys: createApiKeys(documents), close };
};

needing(redis, "redis-server").describe("in Redis", () => {
  test("one process can create and revoke keys while another one checks them", async () => {
    const url = emptyDatabase();
    const [server, console] = [await openKeys(url), await openKeys(url)];
    const about = { tenant: "acme", user: "ada", scopes: ["read" as const], name: "" };
    const { record } = await issueApiKey(console.keys, about);
    expect(await server.keys.find(record.id)).toMatchObject({ id: record.id });
    await console.keys.revoke(record.id);
    console.close();
    expect(await server.keys.find(record.id)).toHaveProperty("revoked_at");
    server.close();
    await expect(server.keys.find(record.id)).rejects.toMatchObject({ code: "unavailable" });
  });

  test("the names of Redis keys contain no tenant and no API key; the record contains no secret", async () => {
    const database = databases;
    const { keys, close } = await openKeys(emptyDatabase());
    const about = { tenant: "acme", user: "ada", scopes: ["read" as const], name: "" };
    const { key, record } = await issueApiKey(keys, about);
    close();
    const names = redis?.ask("-n", String(database), "KEYS", "*").split("\n") ?? [];
    expect(names.toSorted()).toEqual([
      "sk:{format}",
      "sk:{keys}:created:records",
      expect.stringMatching(/^sk:\{keys\}:done:\w{23}$/),
      "sk:{keys}:names:records",
      "sk:{keys}:records",
      "sk:{keys}:updated:records",
    ]);
    const listed = names.filter((name) => /:(?:created|names|updated):/.test(name));
    for (const kept of [
      redis?.ask("-n", String(database), "HGETALL", "sk:{keys}:records"),
      ...listed.map((name) => redis?.ask("-n", String(database), "ZRANGE", name, "0", "-1")),
    ]) {
      expect(kept).toContain(record.id);
      expect(kept).not.toContain(key.slice(-43));
    }
  });
});
