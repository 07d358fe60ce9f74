// Sandboxes on three engines of one deployment, of which one is reached by TLS.

import { afterAll, expect, onTestFinished, test } from "vitest";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import type { EngineSettings } from "../../../src/sandbox/definition.ts";
import { createLedger, forgetEngine } from "../../../src/sandbox/ledger.ts";
import type { PoolOptions } from "../../../src/sandbox/pool.ts";
import { execute, readAll, refuses } from "../../support/backend.ts";
import { newCertificates } from "../../support/certificates.ts";
import { describeWithOwnEngine, type Engine, moreEngines } from "../../support/engine.ts";
import { ada, bob, configOf, newServer, newWorld, type World } from "./opened.ts";

const { signal } = new AbortController();
const certificates = await newCertificates(afterAll);
const ADDRESS = "tcp://127.0.0.1:2376";
const { ca, server, client } = certificates;
const tls = ["--tlsverify", "--tlscacert", ca, "--tlscert", server.cert, "--tlskey", server.key];
const [b, c] = await moreEngines([[], ["--host", ADDRESS, ...tls]]);
const users = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ tenant: "acme", user: `user-${n}` }));

async function volumesOf({ docker }: Engine, { deployment }: World): Promise<string[]> {
  const filters = JSON.stringify({ label: [`skein.deployment=${deployment}`] });
  return ((await docker.listVolumes({ filters })).Volumes ?? []).map(({ Name }) => Name);
}

describeWithOwnEngine("several engines", (a) => {
  if (!b || !c) throw new Error("There are no more engines.");
  const all = [a, b, c];
  const named: Record<"a" | "b" | "c", EngineSettings> = {
    a: { name: "a", host: a.host },
    b: { name: "b", host: b.host },
    c: { name: "c", host: ADDRESS, tls: { ca, ...client } },
  };
  const engines = Object.values(named);
  const on = (world: World, more: Partial<PoolOptions["docker"]> = {}) =>
    newServer(a, world, { engines, ...more });
  const spread = (world: World) =>
    Promise.all(all.map(async (each) => (await volumesOf(each, world)).length));
  /** The configuration, of an image that all of them have. */
  const config = async () => {
    await Promise.all(all.map((each) => each.image("busybox")));
    return configOf(a, "busybox");
  };
  const write = async ({ pool }: ReturnType<typeof on>, owner: typeof ada, text: string) =>
    (await pool.get(owner, await config())).write("f", Buffer.from(text), signal);
  const read = async ({ pool }: ReturnType<typeof on>, owner: typeof ada) =>
    String(await readAll(await pool.get(owner, await config()), "f"));

  test("take an equal number of new users, across all servers, and keep each user's files", async () => {
    const world = await newWorld();
    const servers = [on(world), on(world)] as const;
    for (const [n, owner] of users(6).entries()) await write(servers[n % 2 === 0 ? 0 : 1], owner, owner.user);
    expect(await spread(world)).toEqual([2, 2, 2]);
    const next = on(world);
    for (const owner of users(6)) expect(await read(next, owner)).toBe(owner.user);
    expect(await spread(world)).toEqual([2, 2, 2]);
  });

  test("take an equal number of simultaneous new users", async () => {
    const world = await newWorld();
    const one = on(world);
    await Promise.all(users(6).map((owner) => write(one, owner, owner.user)));
    expect(await spread(world)).toEqual([2, 2, 2]);
  });

  test("have one workspace for a user who starts on several servers at once", async () => {
    const world = await newWorld();
    const servers = Array.from({ length: 4 }, () => on(world));
    await Promise.all(servers.map((each, n) => write(each, ada, `${n}`)));
    expect((await spread(world)).reduce((sum, count) => sum + count)).toBe(1);
  });

  test("run no more sandboxes than configured, and refuse a further user with a reason until one stops", async () => {
    const world = await newWorld();
    const one = on(world, {
      engines: [
        { ...named.a, sandboxes: 1 },
        { ...named.b, sandboxes: 2 },
      ],
    });
    await Promise.all(users(3).map((owner) => write(one, owner, owner.user)));
    expect(await spread(world)).toEqual([1, 2, 0]);
    await refuses(() => write(one, bob, "more"), "unavailable", "engine");
    const onB = (await world.sandboxes.list()).find(({ engine }) => engine === "b");
    await one.pool.stop(onB?.owner ?? ada, await config());
    await write(one, bob, "more");
    expect(await spread(world)).toEqual([1, 3, 0]);
  });

  test("take no new user while they drain, and keep existing ones", async () => {
    const world = await newWorld();
    await write(on(world, { engines: [named.a] }), ada, "hers");
    const one = on(world, { engines: [{ ...named.a, drain: true }, named.b] });
    await write(one, bob, "his");
    expect(await read(one, ada)).toBe("hers");
    expect((await spread(world))[1]).toBe(1);
    const none = on(world, { engines: [{ ...named.a, drain: true }] });
    await refuses(
      () => write(none, { tenant: "acme", user: "eve" }, "hers"),
      "unavailable",
      "No Docker engine",
    );
  });

  test("affect only their own users when they fail, who get no empty workspace instead", async () => {
    const world = await newWorld();
    const one = on(world);
    for (const owner of users(3)) await write(one, owner, owner.user);
    const [first, second, third] = users(3);
    if (!first || !second || !third) throw new Error("There are three.");
    await b.kill();
    try {
      await refuses(() => read(one, second), "unavailable", "Docker engine");
      expect(await read(one, first)).toBe(first.user);
      expect(await read(one, third)).toBe(third.user);
      await write(one, bob, "his");
      expect((await one.pool.status(second, await config())).status).toBe("error");
      one.pool.begin(["docker"]);
      await one.pool.ping();
    } finally {
      await b.start();
    }
    await expect.poll(() => read(one, second).catch(() => undefined)).toBe(second.user);
  });

  test("that the settings no longer name still have their users' files", async () => {
    const world = await newWorld();
    await write(on(world, { engines: [named.b] }), ada, "hers");
    const one = on(world, { engines: [named.a, named.c] });
    await refuses(() => read(one, ada), "unavailable", "settings do not name");
    await refuses(() => one.pool.erase(ada), "unavailable", "settings do not name");
    expect(await spread(world)).toEqual([0, 1, 0]);
    expect(await read(on(world), ada)).toBe("hers");
  });

  test("that are permanently lost and forgotten leave their users new workspaces, and those users can be deleted", async () => {
    const world = await newWorld();
    for (const owner of users(3)) await write(on(world), owner, owner.user);
    const one = on(world, { engines: [named.a, named.c] });
    const [first, second, third] = users(3);
    if (!first || !second || !third) throw new Error("There are three.");
    await refuses(() => read(one, second), "unavailable", "settings do not name");
    expect(await forgetEngine(world.sandboxes, ["a", "c"], "b")).toEqual({ lost: 1, kept: 0 });
    await write(one, second, "new");
    expect(await read(one, second)).toBe("new");
    for (const owner of [first, third]) expect(await read(one, owner)).toBe(owner.user);
    expect(await one.pool.erase(second)).toBe(1);
  });

  test("are searched for files that no ledger knows, as after the end of a server without a store", async () => {
    const world = await newWorld();
    for (const owner of users(3)) await write(on(world), owner, owner.user);
    const next = { ...world, sandboxes: createLedger(createMemoryStores().documents) };
    const one = on(next);
    for (const owner of users(3).reverse()) expect(await read(one, owner)).toBe(owner.user);
    expect(await spread(world)).toEqual([1, 1, 1]);
  });

  test("lose nothing of others when a user is deleted", async () => {
    const world = await newWorld();
    const one = on(world);
    for (const owner of users(3)) await write(one, owner, owner.user);
    const second = users(3)[1] ?? ada;
    expect(await one.pool.erase(second)).toBe(1);
    expect(await spread(world)).toEqual([1, 0, 1]);
    expect(await one.pool.erase(second)).toBe(0);
  });

  test("are each cleared of unused sandboxes, even while one of them is unavailable", async () => {
    const world = await newWorld();
    const one = on(world, { sweepMs: 50 });
    const short = { ...(await config()), idle_stop: "3s", idle_remove: "3s", keep_files: "3s" };
    for (const owner of users(3))
      await (await one.pool.get(owner, short)).write("f", Buffer.from("x"), signal);
    await b.kill();
    try {
      await expect.poll(() => Promise.all([a, c].map((each) => volumesOf(each, world)))).toEqual([[], []]);
    } finally {
      await b.start();
    }
    await expect.poll(() => spread(world)).toEqual([0, 0, 0]);
  });

  test("can be reached over TLS only with certificates that both ends trust", async () => {
    const world = await newWorld();
    const one = on(world, { engines: [named.c] });
    expect((await execute(await one.pool.get(ada, await config()), "echo here")).output).toBe("here\n");
    const other = await newCertificates(onTestFinished);
    for (const strange of [
      { ca: other.ca, ...client },
      { ca, ...other.client },
    ]) {
      const { pool } = on(await newWorld(), { engines: [{ ...named.c, tls: strange }] });
      pool.begin(["docker"]);
      await refuses(() => pool.ping(), "unavailable", "Cannot reach the Docker engine");
    }
    const { pool } = on(await newWorld(), { engines: [{ name: "c", host: ADDRESS }] });
    pool.begin(["docker"]);
    await refuses(() => pool.ping(), "unavailable", "Cannot reach the Docker engine");
  });
});
