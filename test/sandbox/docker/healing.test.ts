import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { expect, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { drained, execute, readAll, refuses } from "../../support/backend.ts";
import { describeWithEngine, describeWithOwnEngine, type Engine } from "../../support/engine.ts";
import { ada, configOf, newServer, newWorld, type World } from "./opened.ts";

const { signal } = new AbortController();

async function containerOf({ docker }: Pick<Engine, "docker">, { deployment }: World) {
  const [found] = await docker.listContainers({ filters: { label: [`skein.deployment=${deployment}`] } });
  if (!found) throw new Error("there is no container");
  return docker.getContainer(found.Id);
}

type Container = Awaited<ReturnType<typeof containerOf>>;

async function areAllRunning({ docker }: Pick<Engine, "docker">, container: Container): Promise<boolean> {
  const { ExecIDs } = await container.inspect();
  const execs = await Promise.all((ExecIDs ?? []).map((id) => docker.getExec(id).inspect()));
  return execs.every(({ Running, Pid }) => Running && Pid > 0);
}

/** A command that has begun, and runs on. */
async function begun(backend: Backend) {
  const stream = backend.exec("echo begun; sleep 300", { signal, timeoutMs: 300_000 });
  await stream.next();
  return stream;
}

describeWithOwnEngine("a lost sandbox", (engine) => {
  async function opened() {
    const world = await newWorld();
    const { pool, states } = newServer(engine, world);
    const config = await configOf(engine, "busybox");
    const backend = await pool.get(ada, config);
    await backend.write("f", Buffer.from("kept"), signal);
    return { world, pool, backend, config, states };
  }
  const isWell = async (backend: Backend) => {
    expect(String(await readAll(backend, "f"))).toBe("kept");
    expect(await execute(backend, "cat f")).toMatchObject({ output: "kept", exitCode: 0 });
  };

  test.each<[string, RegExp, (container: Container) => Promise<unknown>]>([
    ["removed", /container was (removed|killed)/, (container) => container.remove({ force: true })],
    ["killed", /container was killed/, (container) => container.kill()],
    ["stopped", /container was (stopped|killed)/, (container) => container.stop({ t: 0 })],
  ])(
    "because it was %s is reported to the command, and returns for the next call",
    async (_, words, harm) => {
      const { world, backend } = await opened();
      const command = await begun(backend);
      const container = await containerOf(engine, world);
      const [result] = await Promise.all([drained(command), harm(container)]);
      expect(result).toMatchObject({
        ended: "sandbox-lost",
        exitCode: null,
        detail: expect.stringMatching(words),
      });
      await isWell(backend);
    },
  );

  test("between two calls is repaired for the next one", async () => {
    const { world, backend } = await opened();
    for (const harm of ["kill", "remove", "stop", "restart"] as const) {
      const container = await containerOf(engine, world);
      await (harm === "remove" ? container.remove({ force: true }) : container[harm]({}));
      await isWell(backend);
    }
  });

  test("by a pause resumes the container", async () => {
    const { world, backend } = await opened();
    const container = await containerOf(engine, world);
    // An engine that pauses a container while something is being started in it may never answer for it again.
    await expect.poll(() => areAllRunning(engine, container)).toBe(true);
    await container.pause();
    await isWell(backend);
  });

  test("with its engine recovers when the engine returns", async () => {
    const { backend } = await opened();
    const command = await begun(backend);
    const [result] = await Promise.all([drained(command), engine.stop()]);
    expect(result).toMatchObject({ ended: "sandbox-lost" });
    await engine.start();
    await isWell(backend);
  });

  test("with a killed engine recovers when the engine returns", async () => {
    const { backend } = await opened();
    const command = await begun(backend);
    await engine.kill();
    expect(await drained(command)).toMatchObject({ ended: "sandbox-lost" });
    await engine.start();
    await isWell(backend);
  });

  test("is reported while the engine is unreachable, and again when it returns", async () => {
    const { backend, pool, config } = await opened();
    await engine.stop();
    await refuses(() => readAll(backend, "f"), "unavailable", "Docker engine");
    expect(await pool.status(ada, config)).toMatchObject({
      status: "error",
      error: expect.stringContaining("Docker engine"),
    });
    pool.begin(["docker"]);
    await refuses(() => pool.ping(), "unavailable", "Docker engine");
    await engine.start();
    await isWell(backend);
    await pool.ping();
  });
});

describeWithEngine("an unreachable engine", (engine) => {
  test("is logged once each time, and its sandboxes are found when it returns", async () => {
    const lost = await newWorld();
    const first = newServer(engine, lost, { sweepMs: 60_000 });
    const config = await configOf(engine, "busybox", { idle_stop: "1s", idle_remove: "1s" });
    await first.pool.start(ada, config);
    await first.pool.close();
    const connections = new Set<Socket>();
    const way = createServer((client) => {
      connections.add(client);
      pipeline(client, connect(engine.host.replace("unix://", "")), client, () => {});
    });
    const socket = join(lost.dataDir, "engine.sock");
    const next = { ...(await newWorld()), deployment: lost.deployment, dataDir: lost.dataDir };
    const { pool, warnings } = newServer({ host: `unix://${socket}` }, next);
    const logged = () =>
      warnings.flatMap((details) => ("engine" in details && "err" in details ? [`${details.err}`] : []));
    pool.begin(["docker"]);
    await expect.poll(logged).toHaveLength(1);
    way.listen(socket);
    // Unlike files, a container expires, so its end shows that the first check is complete.
    const label = [`skein.deployment=${lost.deployment}`];
    const containers = () => engine.docker.listContainers({ all: true, filters: { label } });
    const states = async () => (await next.sandboxes.list()).map(({ state }) => state);
    await expect.poll(async () => [(await containers()).length, await states()]).toEqual([0, ["removed"]]);
    way.close();
    for (const connection of connections) connection.destroy();
    await expect.poll(() => logged().length - new Set(logged()).size).toBe(1);
  });
});

describeWithOwnEngine("a command and its own sandbox", (engine) => {
  test("by killing everything in it loses at most the command", async () => {
    const world = await newWorld();
    const { pool } = newServer(engine, world);
    const backend = await pool.get(ada, await configOf(engine, "busybox"));
    await backend.write("f", Buffer.from("kept"), signal);
    const before = (await containerOf(engine, world)).id;
    const result = await execute(backend, "kill -9 -1; sleep 300");
    expect(result.ended).toMatch(/sandbox-lost|output-lost/);
    expect(String(await readAll(backend, "f"))).toBe("kept");
    expect((await containerOf(engine, world)).id).toBe(before);
  });

  test("by exhausting its memory gets an error that names the cause", async () => {
    const { pool } = newServer(engine, await newWorld());
    const backend = await pool.get(ada, await configOf(engine, "busybox"));
    const result = await execute(backend, "tail /dev/zero");
    expect(result).toMatchObject({ ended: "oom" });
    expect((await execute(backend, "echo next")).output).toBe("next\n");
  });
});
