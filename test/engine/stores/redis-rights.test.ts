// The Redis user of a server that may do no more than it needs.

import { readdir, readFile } from "node:fs/promises";
import { afterAll, expect, test } from "vitest";
import { createRedisStores } from "../../../src/engine/stores/redis/index.ts";
import { COMMANDS } from "../../../src/engine/stores/redis/rights.ts";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { needing } from "../../support/needing.ts";
import { startCluster, startRedis, type TestRedis } from "../../support/redis.ts";
import { startServer } from "../../support/server.ts";
import { ADA, claimed, delta, done, keyOf, note, readAll, seqsOf, upTo } from "./fixture.ts";

const redis = await startRedis();
const cluster = await startCluster();
afterAll(async () => {
  for (const each of [redis, ...(cluster ?? [])]) await each?.close();
});

/** The rights that the docs list for operators. */
async function documented(): Promise<string[]> {
  const page = await readFile(new URL("../../../docs/guides/redis.md", import.meta.url), "utf8");
  const [, rights = ""] =
    /^ACL SETUSER skein on >PASSWORD (.*)$/m.exec(page) ?? expect.fail("No rights there.");
  return rights.split(" ");
}

function urlFor(server: TestRedis, ...rights: string[]): string {
  server.ask("ACL", "SETUSER", "app", "reset", "on", ">pw", ...rights);
  return `redis://app:pw@127.0.0.1:${server.port}`;
}

async function expectRefusal(rights: readonly string[], message: RegExp) {
  const refused = redis ? createRedisStores({ url: urlFor(redis, ...rights) }) : undefined;
  await expect(refused).rejects.toMatchObject({
    code: "config_invalid",
    message: expect.stringMatching(message),
  });
}

needing(redis && cluster, "redis-server").describe("a Redis user with few rights", () => {
  test.each(["one Redis", "a cluster"])(
    "serves two processes with the rights from the docs, on %s",
    async (where) => {
      const servers = where === "a cluster" ? (cluster ?? []) : redis ? [redis] : [];
      const rights = await documented();
      const [url = ""] = servers.map((each) => urlFor(each, ...rights));
      const [one, two] = [await createRedisStores({ url }), await createRedisStores({ url })];
      try {
        const heard = two.bus.subscribe(ADA, new AbortController().signal).next();
        const claim = await claimed(one, "t");
        const reading = readAll(two, keyOf(claim));
        await one.events.append(claim.lease, [delta("x"), note("y")]);
        one.bus.publish(ADA, { event: "run_started", data: { thread_id: "t", run_id: "r", agent: "a" } });
        expect((await heard).value).toMatchObject({ event: "run_started" });
        await one.events.append(claim.lease, [done()]);
        expect(seqsOf(await reading)).toEqual(upTo(3));
        await one.ping();
      } finally {
        await Promise.all([one.close(), two.close()]);
      }
    },
  );

  test("that are insufficient prevent the server from starting, and the error names the missing ones", async () => {
    const rest = ["+@all", "-@dangerous", "+info"];
    await expectRefusal(["~sk:*", "resetchannels", "&other:*", ...rest], /publish and subscribe.*&sk:\*/);
    await expectRefusal(["~other:*", "&sk:*", ...rest], /key.*docs\/guides\/redis\.md/);
    await expectRefusal(["~sk:*", "&sk:*", ...rest, "-hset", "-zadd"], /`hset`, `zadd`/);
    await expectRefusal(["~sk:*", "&sk:*", ...rest, "-@scripting"], /'eval(sha)?'/);
  });

  test("that are revoked later make the server unready, with the reason", async () => {
    if (!redis) return;
    const stores = await createRedisStores({ url: urlFor(redis, "~sk:*", "&sk:*", "+@all") });
    try {
      await stores.ping();
      redis.ask("ACL", "SETUSER", "app", "-publish");
      await expect(stores.ping()).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringContaining("refuses access to this server"),
      });
    } finally {
      await stores.close();
    }
  });
});

needing(redis, "redis-server").test(
  "a run whose end cannot be written ends its process's responses",
  async () => {
    if (!redis) return;
    const url = urlFor(redis, "~sk:*", "&sk:*", "+@all");
    const config = { store: "redis", redis: { url, lease: "1s" } } as const;
    const { tool, entered, open } = gate();
    const server = await startServer({ script: gated, tools: [tool], agents: WITH_GATE, config });
    const headers = { "content-type": "application/json", accept: "application/json" };
    const body = JSON.stringify({ input: "go" });
    const answer = fetch(`${server.url}/threads/t/runs`, { method: "POST", headers, body });
    await entered;
    const viewer = await fetch(`${server.url}/threads/t/events`);
    redis.ask("ACL", "SETUSER", "app", "-xadd");
    open();
    const refused = await answer;
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ code: "unavailable" });
    await viewer.text();
  },
);

test("the rights that are checked at startup are those of every command", async () => {
  const folder = new URL("../../../src/engine/stores/redis/", import.meta.url);
  const files = (await readdir(folder)).filter((file) => file.endsWith(".ts"));
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, folder), "utf8")));
  const called = texts.flatMap((text) =>
    [...text.matchAll(/redis\.p?call\('(\w+)'/g)].map(([, name]) => name),
  );
  expect(called.length).toBeGreaterThan(100);
  expect([...new Set(called)].filter((name) => !COMMANDS.some((each) => each === name))).toEqual([]);
});
