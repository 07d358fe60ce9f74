import { connect } from "node:net";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { checkGrammar } from "../../src/core/grammar.ts";
import { dataOf, names } from "../support/drain.ts";
import { freePort } from "../support/free-port.ts";
import { needing } from "../support/needing.ts";
import { SHARED_STORES } from "../support/shared-stores.ts";
import { numbers, post, reconnect } from "../support/sse.ts";
import { ask, logOf, pidsOf, serveTwo, workerWithRun } from "../support/workers.ts";

const IN_WORDS = `- { say: a b c d e f g h i j k l m n o p q r s t, delay_ms: 100 }`;

for (const { start, program } of SHARED_STORES) {
  const shared = await start();
  afterAll(() => shared?.close());

  needing(shared, program).describe(`${program}: kill -9 of a worker`, () => {
    test("another continues its run, whose viewer loses nothing, and a new worker takes its place", async () => {
      const server = await serveTwo(shared, { script: IN_WORDS });
      const viewer = await post(`${server.url}/threads/t1/runs`, { input: "go" });
      await viewer.until(({ event }) => event === "on_chat_model_stream");
      const worker = await workerWithRun(server);
      const before = pidsOf(server).get(worker) ?? 0;
      process.kill(before, "SIGKILL");
      // Its viewers are cut off if they were its own.
      await viewer.ended().catch(() => {});
      const seen = await reconnect(viewer, server.url);
      expect(numbers(seen)).toEqual(seen.map((_, index) => index + 1));
      const events = seen.map(({ event }) => event);
      expect(checkGrammar(events)).toEqual([]);
      expect(names(events)).toContain("run_resumed");
      expect(dataOf(events, "done")[0]?.status).toBe("success");
      await expect.poll(() => pidsOf(server).get(worker)).not.toBe(before);
      server.child.kill("SIGTERM");
      expect(await server.exited).toBe(0);
    });
  });

  needing(shared, program).describe(`${program}: SIGTERM of a server with workers`, () => {
    test("hands its runs over within the grace, and the next server continues them", async () => {
      const config = { shutdown: { grace: "0.1s" } };
      const port = String(await freePort());
      const database = await shared?.database();
      const again = {
        ...shared,
        kind: shared?.kind ?? "redis",
        database: async () => database ?? "",
      } as typeof shared;
      const one = await serveTwo(again, { script: IN_WORDS, config, env: { PORT: port } });
      const viewer = await post(`${one.url}/threads/t1/runs`, { input: "go" });
      await viewer.until(({ event }) => event === "on_chat_model_stream");
      one.child.kill("SIGTERM");
      await viewer.ended();
      expect(viewer.others.at(-1)).toContain("server_shutdown");
      expect(await one.exited).toBe(0);
      const next = await serveTwo(again, { dir: one.dir, script: IN_WORDS, config, env: { PORT: port } });
      const events = (await reconnect(viewer, next.url)).map(({ event }) => event);
      expect(checkGrammar(events)).toEqual([]);
      expect(dataOf(events, "done")[0]?.status).toBe("success");
    });
  });

  needing(shared, program).describe(`${program}: without its store`, () => {
    test("workers that were killed are back once the store is", async () => {
      const own = await start();
      onTestFinished(() => own?.close());
      const server = await serveTwo(own, { env: { PORT: String(await freePort()) } });
      await own?.kill();
      process.kill(pidsOf(server).get(1) ?? 0, "SIGKILL");
      await expect
        .poll(() => logOf(server).filter(({ msg }) => msg.startsWith("a worker ended")).length)
        .toBe(2);
      await own?.start();
      const before = new Set(pidsOf(server).values());
      await expect.poll(() => new Set([...before, ...pidsOf(server).values()]).size).toBe(3);
      expect((await ask(`${server.url}/health`)).status).toBe(200);
    });
  });
}

const [{ start: startRedis, program }] = SHARED_STORES;
const redis = await startRedis();
afterAll(() => redis?.close());

needing(redis, program).describe("a server whose workers are all killed", () => {
  test("answers 503 until one serves again, however often that happens, and never refuses a connection for long", async () => {
    const server = await serveTwo(redis, { env: { PORT: String(await freePort()) } });
    const seen = new Set<number | string>();
    const newIn = (before: ReadonlyMap<number, number>) =>
      [...pidsOf(server)].filter(([worker, pid]) => before.get(worker) !== pid).length;
    for (let round = 0; round < 2; round++) {
      const before = pidsOf(server);
      for (const pid of before.values()) process.kill(pid, "SIGKILL");
      const look = async () => {
        seen.add(await ask(`${server.url}/health`).then(({ status }) => status, String));
        return newIn(before);
      };
      await expect.poll(look, { interval: 5 }).toBe(2);
      expect((await ask(`${server.url}/health`)).status).toBe(200);
    }
    expect(seen).toContain(503);
    const restarts = logOf(server).filter(({ restart_ms }) => restart_ms === 0);
    expect(restarts).toHaveLength(2);
  });
});

// The process counts how often its workers end, not what they miss.
needing(redis, program).describe("without its store", () => {
  test("a server whose workers all ended and cannot start ends, after a few attempts", async () => {
    const own = await startRedis();
    onTestFinished(() => own?.close());
    const server = await serveTwo(own, { env: { PORT: String(await freePort()) } });
    await own?.kill();
    for (const pid of pidsOf(server).values()) process.kill(pid, "SIGKILL");
    expect(await server.exited).toBe(1);
    const restarts = logOf(server).filter(({ msg }) => msg.startsWith("a worker ended"));
    expect(restarts.length).toBeGreaterThanOrEqual(5);
    expect(restarts.length).toBeLessThan(12);
  });
});

needing(redis, program).describe("a worker that hangs", () => {
  test("gets no more than one new connection, which ends with the worker; the rest is answered by the other", async () => {
    const server = await serveTwo(redis);
    const pid = pidsOf(server).get(1) ?? 0;
    process.kill(pid, "SIGSTOP");
    const clients = Array.from({ length: 8 }, () => clientOf(server.url));
    await expect.poll(() => clients.filter(({ answered }) => answered()).length).toBe(7);
    expect(clients.filter(({ isOver }) => !isOver())).toHaveLength(1);
    process.kill(pid, "SIGKILL");
    for (const { over } of clients) await over;
  });

  test("is killed some time after the others have ended, when the server is asked twice to stop", async () => {
    const server = await serveTwo(redis);
    process.kill(pidsOf(server).get(1) ?? 0, "SIGSTOP");
    server.child.kill("SIGTERM");
    await expect
      .poll(() => logOf(server).filter(({ msg }) => msg === "shutting down").length)
      .toBeGreaterThan(0);
    server.child.kill("SIGINT");
    expect(await server.exited).toBe(1);
  });
});

/** A client that asks once and waits. */
function clientOf(url: string) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = "";
  let isOver = false;
  socket.on("data", (bytes) => (text += String(bytes)));
  socket.on("error", () => {});
  const { promise: over, resolve } = Promise.withResolvers<void>();
  socket.once("close", () => {
    isOver = true;
    resolve();
  });
  socket.write("GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
  return { answered: () => text.includes("200 OK"), isOver: () => isOver, over };
}
