// An engine that drains gives its sandboxes away, with their files, to another one.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Transform } from "node:stream";
import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import type { BackendConfig } from "../../../src/agent/core/backend.ts";
import { execute, readAll } from "../../support/backend.ts";
import { describeWithOwnEngine, type Engine, moreEngines } from "../../support/engine.ts";
import { until } from "../../support/until.ts";
import { ada, bob, configOf, newServer, newWorld, type World } from "./opened.ts";

const { signal } = new AbortController();
const [b] = await moreEngines([[]]);

/** Containers and volumes of the deployment. */
async function heldBy({ docker }: Engine, { deployment }: World): Promise<string[]> {
  const label = [`skein.deployment=${deployment}`];
  const { Volumes } = await docker.listVolumes({ filters: JSON.stringify({ label }) });
  const containers = await docker.listContainers({ all: true, filters: { label } });
  return [...containers.flatMap(({ Names }) => Names), ...(Volumes ?? []).map(({ Name }) => Name)];
}

/** Of everything in the workspace: kinds, modes, owners, sizes, link targets and contents. */
const LISTING = `find . -mindepth 1 ! -path './.skein*' | sort | while read -r f; do
  stat -c '%A %u:%g %h %n' "$f"; if [ -h "$f" ]; then readlink "$f"; elif [ -f "$f" ]; then md5sum < "$f"; fi; done`;
const FILL = `mkdir -p deep/er empty && echo text > deep/er/f && ln deep/er/f hard && ln -s ../nowhere soft && ln -s /etc/passwd away &&
  dd if=/dev/urandom of=big bs=1M count=5 2> /dev/null && printf '#!/bin/sh' > run && chmod 4750 run && mkfifo pipe &&
  touch "$(printf 'odd \\303\\244 name')" .hidden && touch -d '2001-02-03 04:05:06' old && chmod 700 deep`;

/** The address of an engine that keeps another text than it is given, of the same length. */
async function altering(host: string, text: string, other: string): Promise<string> {
  const sockets: Socket[] = [];
  const server = createServer((client) => {
    const engine = connect(new URL(host).pathname);
    const change = new Transform({
      transform: (chunk: Buffer, _, done) =>
        done(null, Buffer.from(chunk.toString("latin1").replaceAll(text, other), "latin1")),
    });
    client.pipe(change).pipe(engine).pipe(client);
    for (const socket of [client, engine]) {
      sockets.push(socket);
      socket.on("error", () => {});
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describeWithOwnEngine("a draining engine", (a) => {
  if (!b) throw new Error("There is no second engine.");
  const engines = (drain: boolean) => [
    { name: "a", host: a.host, drain },
    { name: "b", host: b.host },
  ];
  const on = (world: World, drain: boolean) => {
    const server = newServer(a, world, { engines: engines(drain), sweepMs: 50 });
    server.pool.begin(["docker"]);
    return server;
  };
  const onA = (world: World) => newServer(a, world, { engines: engines(false).slice(0, 1) });
  const config = async (more: object = {}) => {
    await b.image("debian");
    return configOf(a, "debian", more);
  };
  const listing = async ({ pool }: ReturnType<typeof on>, of: BackendConfig, owner = ada) =>
    (await execute(await pool.get(owner, of), LISTING)).output;
  const engineOf = async ({ sandboxes }: World) => (await sandboxes.list()).map(({ engine }) => engine);

  test.each(["stopped", "removed"] as const)(
    "becomes empty, and a %s workspace is the same on the other engine",
    async (state) => {
      const world = await newWorld();
      const first = onA(world);
      const of = await config();
      const short = state === "removed" ? await config({ idle_stop: "1s", idle_remove: "1s" }) : of;
      expect(await execute(await first.pool.get(ada, short), FILL)).toMatchObject({ exitCode: 0 });
      const before = await listing(first, short);
      expect(before.split("\n").length).toBeGreaterThan(15);
      if (state === "stopped") await first.pool.stop(ada, of);
      else {
        first.pool.begin(["docker"]);
        await expect
          .poll(async () => (await world.sandboxes.list()).map((each) => each.state))
          .toEqual([state]);
      }
      const server = on(world, true);
      await expect.poll(() => heldBy(a, world)).toEqual([]);
      await expect
        .poll(async () => (await world.sandboxes.list())[0])
        .toMatchObject({ engine: "b", state: "removed" });
      expect((await world.sandboxes.list())[0]).not.toHaveProperty("copy");
      expect(await listing(server, of)).toBe(before);
      const old = await execute(
        await server.pool.get(ada, of),
        "date -r old +%F && stat -c %U:%a . && echo x > new",
      );
      expect(old).toMatchObject({ exitCode: 0, output: expect.stringContaining("2001-02-03") });
      expect(await heldBy(b, world)).toHaveLength(2);
      expect(await server.pool.erase(ada)).toBe(1);
      expect([await heldBy(a, world), await heldBy(b, world)]).toEqual([[], []]);
    },
  );

  test("keeps sandboxes until they are unused, however many servers check", async () => {
    const world = await newWorld();
    const of = await config();
    const servers = [on(world, true), on(world, true)] as const;
    const first = onA(world);
    await (await first.pool.get(ada, of)).write("f", Buffer.from("hers"), signal);
    await (await servers[0].pool.get(bob, of)).write("f", Buffer.from("his"), signal);
    expect((await engineOf(world)).sort()).toEqual(["a", "b"]);
    expect(String(await readAll(await servers[1].pool.get(ada, of), "f"))).toBe("hers");
    await first.pool.stop(ada, of);
    await expect.poll(() => engineOf(world)).toEqual(["b", "b"]);
    await expect.poll(() => heldBy(a, world)).toEqual([]);
    for (const { pool } of servers) expect(String(await readAll(await pool.get(ada, of), "f"))).toBe("hers");
  });

  test("makes a user wait while the files are copied, and then shows all of them", async () => {
    const world = await newWorld();
    const of = await config();
    const first = onA(world);
    await execute(
      await first.pool.get(ada, of),
      "dd if=/dev/urandom of=big bs=1M count=40 2> /dev/null; md5sum big > sum",
    );
    await first.pool.stop(ada, of);
    const server = on(world, true);
    await until(async () => (await world.sandboxes.list())[0]?.copy === "b");
    expect((await execute(await server.pool.get(ada, of), "md5sum -c sum")).output).toContain("big: OK");
    await expect.poll(() => engineOf(world)).toEqual(["b"]);
  });

  test("keeps a workspace that the other engine cannot accept, and its user can continue", async () => {
    const world = await newWorld();
    const of = await config();
    const first = onA(world);
    await (await first.pool.get(ada, of)).write("f", Buffer.from("hers"), signal);
    await first.pool.stop(ada, of);
    await b.stop();
    try {
      const server = on(world, true);
      await expect.poll(() => server.warnings.length).toBeGreaterThan(0);
      expect(String(await readAll(await server.pool.get(ada, of), "f"))).toBe("hers");
      expect(await engineOf(world)).toEqual(["a"]);
    } finally {
      await b.start();
    }
  });

  test("keeps a workspace whose copy would be far larger than allowed", async () => {
    const world = await newWorld();
    const of = await config();
    const first = onA(world);
    const holes =
      "for n in 1 2 3 4; do dd if=/dev/null of=hole$n bs=1M seek=60 2> /dev/null; done; ls | wc -l";
    expect((await execute(await first.pool.get(ada, of), holes)).output).toBe("4\n");
    await first.pool.stop(ada, of);
    const server = on(world, true);
    await expect.poll(() => inspect(server.warnings)).toContain("including holes");
    await expect
      .poll(async () => (await world.sandboxes.list())[0])
      .toMatchObject({ engine: "a", state: "stopped" });
    expect((await execute(await server.pool.get(ada, of), "ls | wc -l")).output).toBe("4\n");
    expect(await heldBy(b, world)).toEqual([]);
  });

  test("keeps a workspace whose copy differs, leaves no copy, and logs the failure", async () => {
    const world = await newWorld();
    const of = await config();
    const first = onA(world);
    await (await first.pool.get(ada, of)).write("f", Buffer.from("her true words"), signal);
    await first.pool.stop(ada, of);
    const liar = await altering(b.host, "her true words", "her last words");
    const [from] = engines(true);
    if (!from) throw new Error("There is one.");
    const server = newServer(a, world, { engines: [from, { name: "b", host: liar }], sweepMs: 50 });
    server.pool.begin(["docker"]);
    await expect.poll(() => inspect(server.warnings)).toContain("copy of a workspace differs");
    await expect
      .poll(async () => (await world.sandboxes.list())[0])
      .toMatchObject({ engine: "a", state: "stopped" });
    expect((await world.sandboxes.list())[0]).not.toHaveProperty("copy");
    expect(await heldBy(b, world)).toEqual([]);
    expect(String(await readAll(await server.pool.get(ada, of), "f"))).toBe("her true words");
  });

  test("leaves no copy of a move whose server died in between", async () => {
    const world = await newWorld();
    const of = await config();
    const first = onA(world);
    await (await first.pool.get(ada, of)).write("f", Buffer.from("hers"), signal);
    await first.pool.stop(ada, of);
    const [seen] = await world.sandboxes.list();
    if (!seen) throw new Error("It is not recorded.");
    // What such a server has left: the record of the move, and a volume with a part of the files.
    const begun = await world.sandboxes.begin(seen, { copy: "b" });
    const Labels = { "skein.deployment": world.deployment };
    await b.docker.createVolume({ Name: seen.id, Labels });
    if (!begun || !(await world.sandboxes.settle(begun, "stopped")))
      throw new Error("It could not be recorded.");
    const server = on(world, true);
    await expect.poll(() => engineOf(world)).toEqual(["b"]);
    await expect.poll(() => heldBy(a, world)).toEqual([]);
    expect(String(await readAll(await server.pool.get(ada, of), "f"))).toBe("hers");
  });
});
