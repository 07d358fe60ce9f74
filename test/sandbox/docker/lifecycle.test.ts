import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { drained, execute, readAll, refuses } from "../../support/backend.ts";
import { describeWithOwnEngine, type Engine } from "../../support/engine.ts";
import { ada, bob, configOf, newServer, newWorld, type World } from "./opened.ts";

const { signal } = new AbortController();
const text = async (backend: Backend, path: string) => String(await readAll(backend, path));

async function containersOf({ docker }: Engine, { deployment }: World) {
  return docker.listContainers({ all: true, filters: { label: [`skein.deployment=${deployment}`] } });
}
async function volumesOf({ docker }: Engine, { deployment }: World) {
  const { Volumes } = await docker.listVolumes({
    filters: JSON.stringify({ label: [`skein.deployment=${deployment}`] }),
  });
  return Volumes ?? [];
}

describeWithOwnEngine("a sandbox", (engine) => {
  test("is created once, however many servers request it at the same time", async () => {
    const world = await newWorld();
    const first = newServer(engine, world);
    const servers = [first, newServer(engine, world)];
    const config = await configOf(engine, "busybox");
    await Promise.all(
      servers.flatMap(({ pool }, server) =>
        Array.from({ length: 10 }, async (_, index) => {
          const backend = await pool.get(ada, config);
          await backend.write(`f${server}-${index}`, Buffer.from("x"), signal);
        }),
      ),
    );
    expect((await containersOf(engine, world)).length).toBe(1);
    const backend = await first.pool.get(ada, config);
    expect((await backend.list(".", signal)).length).toBe(20);
  });

  test("is available before it runs, and reported while it starts", async () => {
    const world = await newWorld();
    const { pool, states } = newServer(engine, world);
    const config = await configOf(engine, "busybox");
    expect(await pool.status(ada, config)).toEqual({
      name: "code",
      type: "docker",
      status: "stopped",
      workdir: "/workspace",
    });
    const backend = await pool.get(ada, config);
    expect((await pool.status(ada, config)).status).toBe("starting");
    expect((await execute(backend, "echo here")).output).toBe("here\n");
    expect(states.map(({ status }) => status)).toEqual(["starting", "running"]);
    expect((await pool.stop(ada, config)).status).toBe("stopped");
    expect(states.at(-1)).toMatchObject({ name: "code", status: "stopped" });
  });

  test("keeps each user's files from all others", async () => {
    const world = await newWorld();
    const { pool } = newServer(engine, world);
    const config = await configOf(engine, "busybox");
    const [hers, his] = await Promise.all([pool.get(ada, config), pool.get(bob, config)]);
    await hers.write("secret", Buffer.from("hers"), signal);
    await refuses(() => his.stat("secret", signal), "not_found", "`secret`");
    expect((await execute(his, "find / -name secret 2> /dev/null; ls -A")).output).toBe(".skein\n");
  });

  test("continues under the next server with the same container and files", async () => {
    const world = await newWorld();
    const config = await configOf(engine, "busybox");
    const first = newServer(engine, world);
    await (await first.pool.get(ada, config)).write("f", Buffer.from("kept"), signal);
    const [before] = await containersOf(engine, world);
    const second = newServer(engine, world);
    expect(await text(await second.pool.get(ada, config), "f")).toBe("kept");
    const [after] = await containersOf(engine, world);
    expect(after?.Id).toBe(before?.Id);
  });

  test("ends the commands of a server that was killed, and no others", async () => {
    const world = await newWorld();
    const config = await configOf(engine, "busybox");
    const { pool } = newServer(engine, world);
    const backend = await pool.get(ada, config);
    const other = backend.exec("echo on; while [ ! -e go ]; do sleep 0.05; done; echo off", {
      signal,
      timeoutMs: 300_000,
    });
    await other.next();
    const args = [engine.host, world.dataDir, world.deployment, JSON.stringify(config)];
    const server = fork(join(import.meta.dirname, "../../support/docker-server/main.ts"), args);
    await once(server, "message");
    const sleeping = async () => (await execute(backend, "ps -o args")).output.match(/sleep 30\d/g)?.sort();
    await expect.poll(sleeping).toEqual(["sleep 301", "sleep 302", "sleep 303", "sleep 304"]);
    server.kill("SIGKILL");
    // What was put into the background with its output closed was meant to stay.
    await expect.poll(sleeping).toEqual(["sleep 301"]);
    await backend.write("go", Buffer.from(""), signal);
    expect((await drained(other)).output).toBe("on\noff\n");
  });

  test("stops with its server, and keeps the files", async () => {
    const world = await newWorld();
    const config = await configOf(engine, "busybox");
    const first = newServer(engine, world);
    const backend = await first.pool.get(ada, config);
    await backend.write("f", Buffer.from("kept"), signal);
    await first.pool.close();
    await refuses(() => backend.stat("f", signal), "unavailable", "the server is stopping");
    expect((await containersOf(engine, world)).map(({ State }) => State)).toEqual(["exited"]);
    const second = newServer(engine, world);
    expect(await text(await second.pool.get(ada, config), "f")).toBe("kept");
  });

  test("is stopped when unused, then removed, and returns with its files", async () => {
    const world = await newWorld();
    const { pool } = newServer(engine, world);
    // Long enough apart for a busy machine to look in between.
    const config = await configOf(engine, "busybox", { idle_stop: "0.5s", idle_remove: "10s" });
    const backend = await pool.get(ada, config);
    await backend.write("f", Buffer.from("kept"), signal);
    const seen = new Set<string>();
    await expect
      .poll(
        async () => {
          const [container] = await containersOf(engine, world);
          seen.add(container?.State ?? "removed");
          return container === undefined;
        },
        { interval: 50 },
      )
      .toBe(true);
    expect([...seen]).toContain("exited");
    expect(await text(backend, "f")).toBe("kept");
    expect((await containersOf(engine, world)).length).toBe(1);
  });

  test("is not stopped while a command runs in it", async () => {
    const world = await newWorld();
    const { pool } = newServer(engine, world);
    const backend = await pool.get(
      ada,
      await configOf(engine, "busybox", { idle_stop: "0.3s", idle_remove: "0.6s" }),
    );
    expect(await execute(backend, "sleep 2; echo through")).toMatchObject({
      output: "through\n",
      exitCode: 0,
    });
  });

  test("has its files deleted after keep_files, and leaves nothing", async () => {
    const world = await newWorld();
    const { pool } = newServer(engine, world);
    const config = await configOf(engine, "busybox", {
      idle_stop: "0.3s",
      idle_remove: "0.4s",
      keep_files: "0.5s",
    });
    const backend = await pool.get(ada, config);
    await backend.write("f", Buffer.from("x"), signal);
    await expect
      .poll(async () => [(await containersOf(engine, world)).length, (await volumesOf(engine, world)).length])
      .toEqual([0, 0]);
    await refuses(() => backend.stat("f", signal), "not_found", "`f`");
  });

  test("that a crashed server left behind is found by its label and expires like any other", async () => {
    const lost = await newWorld();
    const first = newServer(engine, lost, { sweepMs: 60_000 });
    const config = await configOf(engine, "busybox", {
      idle_stop: "1s",
      idle_remove: "1.5s",
      keep_files: "2s",
    });
    await (await first.pool.get(ada, config)).write("f", Buffer.from("x"), signal);
    // The next one knows nothing but the deployment's name.
    const next = { ...(await newWorld()), deployment: lost.deployment, dataDir: lost.dataDir };
    newServer(engine, next).pool.begin(["docker"]);
    await expect
      .poll(async () => [(await containersOf(engine, lost)).length, (await volumesOf(engine, lost)).length])
      .toEqual([0, 0]);
  });

  test("is recreated with a new configuration and the same files", async () => {
    const world = await newWorld();
    const { pool } = newServer(engine, world);
    const before = await pool.get(ada, await configOf(engine, "busybox"));
    await before.write("f", Buffer.from("kept"), signal);
    const after = await pool.get(ada, await configOf(engine, "debian", { pids: 64 }));
    expect(await text(after, "f")).toBe("kept");
    expect((await execute(after, "python3 -c 'print(6 * 7)'")).output).toBe("42\n");
    expect((await containersOf(engine, world)).length).toBe(1);
  });

  test("can be written to even if the image has no workspace", async () => {
    const world = await newWorld();
    const { pool } = newServer(engine, world);
    const backend = await pool.get(ada, await configOf(engine, "bare", { workdir: "/home/agent" }));
    await backend.write("f", Buffer.from("x"), signal);
    expect((await execute(backend, "id -u; pwd; cat f")).output).toBe("1000\n/home/agent\nx");
    expect((await containersOf(engine, world)).length).toBe(1);
  });

  test("is refused above the caps, and the error names the cap", async () => {
    const world = await newWorld();
    const { pool } = newServer(engine, world, { caps: { total: 2, tenant: 1 } });
    const config = await configOf(engine, "busybox");
    await pool.start(ada, config);
    await refuses(() => pool.start(bob, config), "limit_exceeded", "At most 1 of a tenant's sandboxes");
    await pool.start({ tenant: "other", user: "eve" }, config);
    await refuses(
      () => pool.start({ tenant: "third", user: "eve" }, config),
      "unavailable",
      "All 2 sandboxes",
    );
    expect(await pool.status(bob, config)).toMatchObject({
      status: "error",
      error: expect.stringContaining("At most 1"),
    });
    await pool.stop(ada, config);
    await pool.start(bob, config);
  });

  test("is refused if its tenant's sandboxes have no disk left, until files of one are deleted", async () => {
    const world = await newWorld();
    const { pool } = newServer(engine, world, { caps: { total: 9, tenant: 9, tenantDisk: 48 * 1024 ** 2 } });
    const config = await configOf(engine, "busybox", { disk: "32m" });
    await pool.start(ada, config);
    await pool.stop(ada, config);
    await refuses(() => pool.start(bob, config), "limit_exceeded", "at most 50331648 bytes of disk");
    await pool.start({ tenant: "other", user: "eve" }, config);
    await pool.start(ada, config);
    await pool.erase(ada);
    await pool.start(bob, config);
  });

  test("reports an image that cannot be pulled, in the log too, and leaves nothing", async () => {
    const world = await newWorld();
    const { pool, warnings } = newServer(engine, world);
    const config = { type: "docker", name: "code", image: "127.0.0.1:1/no/such:image" };
    await refuses(() => pool.start(ada, config), "backend_failed", "`127.0.0.1:1/no/such:image`");
    const image = { code: "backend_failed", image: config.image, err: expect.any(Error) };
    const message = "an image cannot be pulled";
    const oneLine = expect.objectContaining({
      ...ada,
      backend: "code",
      sandbox: expect.any(String),
      message,
      ...image,
    });
    expect(warnings.filter((details) => "image" in details)).toEqual([oneLine]);
    const backend = await pool.get(ada, config);
    await refuses(() => readAll(backend, "f"), "backend_failed", "cannot pull it");
    await refuses(
      () => drained(backend.exec("true", { signal, timeoutMs: 1000 })),
      "backend_failed",
      "cannot pull it",
    );
    expect(await containersOf(engine, world)).toEqual([]);
  });

  test("reports a runtime that the engine does not know, in the log too, and leaves nothing", async () => {
    const world = await newWorld();
    const { pool, warnings } = newServer(engine, world);
    await refuses(
      async () => pool.start(ada, await configOf(engine, "busybox", { runtime: "nosuch" })),
      "backend_failed",
      "nosuch",
    );
    expect(warnings).toContainEqual(
      expect.objectContaining({ ...ada, message: "a sandbox cannot be started" }),
    );
    expect(await containersOf(engine, world)).toEqual([]);
  });
});
