// The settings of a server on Redis reach its store, through the real process.

import { afterAll, expect, test } from "vitest";
import { dataOf } from "../support/drain.ts";
import { needing } from "../support/needing.ts";
import { completeLog, serveWith } from "../support/process.ts";
import { startRedis } from "../support/redis.ts";
import { post } from "../support/sse.ts";

const redis = await startRedis();
afterAll(() => redis?.close());

needing(redis, "redis-server").describe("a server on Redis", () => {
  const env = { STORE: "redis", REDIS_URL: `${redis?.url}/0` };
  const runOn = async (url: string, thread: string) =>
    (await post(`${url}/threads/${thread}/runs`, { input: "go" })).ended();
  /** Seconds that are left of all there is of something, the longest first. */
  const livesOf = (pattern: string) =>
    (redis?.ask("KEYS", pattern) ?? "")
      .split("\n")
      .map((key) => Number(redis?.ask("TTL", key)))
      .sort((one, other) => other - one);

  test("keeps threads, interrupted threads and events as long as `retention` says", async () => {
    const { url } = await serveWith(
      { retention: { threads: "1000s", interrupted_threads: "2000s", events: "500s" } },
      {
        ...{ env, agent: { tools: ["ask_user"] } },
        script: "- { call: [{ tool: ask_user, args: { question: Which? } }] }",
      },
    );
    const events = await runOn(url, "t1");
    expect(dataOf(events, "done")[0]?.status).toBe("interrupted");
    expect((await post(`${url}/threads`, { id: "t2" })).status).toBe(201);
    // Keys that can no longer be reached stay for a tenth longer.
    expect(livesOf("*:t1}:meta")).toEqual([expect.closeTo(2200, -2)]);
    expect(livesOf("*:t2}:meta")).toEqual([expect.closeTo(1100, -2)]);
    expect(livesOf("*:t1}:events:*")).toEqual([expect.closeTo(500, -2)]);
  });

  test("keeps threads forever with `retention.threads: forever`, even those that had an end", async () => {
    const before = await serveWith({ retention: { threads: "1000s" } }, { env });
    expect((await post(`${before.url}/threads`, { id: "t3" })).status).toBe(201);
    expect(livesOf("*:t3}:*").every((seconds) => seconds > 0)).toBe(true);
    const { url } = await serveWith({ retention: { threads: "forever" } }, { env });
    expect((await fetch(`${url}/threads/t3`)).status).toBe(200);
    await expect.poll(() => livesOf("*:t3}:meta")).toEqual([-1]);
    await expect.poll(() => livesOf("sk:{*}:threads")).toEqual([-1]);
    await runOn(url, "t3");
    await expect.poll(() => new Set(livesOf("*:t3}:[^e]*"))).toEqual(new Set([-1]));
  });

  test("keeps threads for years, longer than any timer", async () => {
    const { url } = await serveWith({ retention: { threads: "3650d", events: "365d" } }, { env });
    await runOn(url, "t4");
    expect(livesOf("*:t4}:meta")).toEqual([expect.closeTo(1.1 * 3650 * 86_400, -3)]);
    expect(livesOf("*:t4}:events:*")).toEqual([expect.closeTo(365 * 86_400, -3)]);
  });

  test("warns about a Redis that stores nothing on disk, if Redis reports it", async () => {
    const WARNING = "Redis keeps nothing on disk";
    expect(await completeLog(await serveWith({}, { env }))).toContain(WARNING);
    redis?.ask("ACL", "SETUSER", "managed", "on", ">secret", "~*", "&*", "+@all", "-config");
    const url = redis?.url.replace("redis://", "redis://managed:secret@");
    const managed = await serveWith({}, { env: { ...env, REDIS_URL: `${url}/0` } });
    expect(await completeLog(managed)).not.toContain(WARNING);
    redis?.ask("CONFIG", "SET", "save", "3600 1");
    expect(await completeLog(await serveWith({}, { env }))).not.toContain(WARNING);
  });

  test("shares its tickets with the other servers on it", async () => {
    const header = { AUTH: "header", TRUSTED_PROXIES: "127.0.0.1" };
    const [one, other] = await Promise.all([1, 2].map(() => serveWith({}, { env: { ...env, ...header } })));
    const issued = await fetch(`${one?.url}/tickets`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...{ "x-skein-tenant": "acme", "x-skein-user": "ada", "x-skein-scopes": "read" },
      },
      body: '{"path":"/events"}',
    });
    const { ticket } = (await issued.json()) as { ticket: string };
    const opened = await fetch(`${other?.url}/events?ticket=${ticket}`);
    expect(opened.status).toBe(200);
    await opened.body?.cancel();
  });

  test("starts no run that fewer replicas than `redis.wait_replicas` have confirmed", async () => {
    const { url } = await serveWith({ redis: { wait_replicas: 1, lease: "1s" } }, { env });
    const answer = await post(`${url}/threads/t2/runs`, { input: "go" });
    expect(answer.status).toBe(503);
  });
});
