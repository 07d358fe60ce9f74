import { afterAll, expect, test } from "vitest";
import { issueApiKey } from "../../src/http/auth/api-keys.ts";
import { openRedisApiKeys } from "../../src/stores/redis/api-keys.ts";
import { apiKeysContract } from "../contracts/api-keys.ts";
import { needing } from "../support/needing.ts";
import { startRedis } from "../support/redis.ts";

const redis = await startRedis("--databases", "100");
afterAll(() => redis?.close());

let databases = 0;
const emptyDatabase = () => `${redis?.url}/${databases++}`;

needing(redis, "redis-server").describe("in Redis", () => {
  apiKeysContract((now) => openRedisApiKeys(emptyDatabase(), now));

  test("keys are made and revoked by one process while another one checks them", async () => {
    const url = emptyDatabase();
    const [server, console] = [await openRedisApiKeys(url), await openRedisApiKeys(url)];
    const about = { tenant: "acme", user: "ada", scopes: ["read" as const], name: "" };
    const { record } = await issueApiKey(console.keys, about);
    expect(await server.keys.find(record.id)).toMatchObject({ id: record.id });
    await console.keys.revoke(record.id);
    console.close();
    expect(await server.keys.find(record.id)).toHaveProperty("revoked_at");
    server.close();
    await expect(server.keys.find(record.id)).rejects.toMatchObject({ code: "unavailable" });
  });

  test("a key is nobody's by name: what lies there names no tenant but in its record", async () => {
    const database = databases;
    const { keys, close } = await openRedisApiKeys(emptyDatabase());
    const about = { tenant: "acme", user: "ada", scopes: ["read" as const], name: "" };
    const { key, record } = await issueApiKey(keys, about);
    close();
    const names = redis?.ask("-n", String(database), "KEYS", "*").split("\n") ?? [];
    expect(names.toSorted()).toEqual([
      "sk:{keys}:all",
      `sk:{keys}:key:${record.id}`,
      expect.stringMatching(/^sk:\{keys\}:of:[\w-]{22}$/),
    ]);
    expect(redis?.ask("-n", String(database), "HGETALL", `sk:{keys}:key:${record.id}`)).not.toContain(
      key.slice(-43),
    );
  });
});
