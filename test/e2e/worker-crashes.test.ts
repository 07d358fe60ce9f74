import { connect } from "node:net";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { dataOf, names } from "../support/drain.ts";
import { freePort } from "../support/free-port.ts";
import { needing } from "../support/needing.ts";
import { SHARED_STORES } from "../support/shared-stores.ts";
import { post, seenOn } from "../support/sse.ts";
import { contradictionsIn } from "../support/store-check.ts";
import { ask, logOf, pidsOf, serveTwo, workerWithRun } from "../support/workers.ts";

const IN_A_COMMAND = `
- { say: Working., call: [{ tool: execute, args: { command: "echo begun; sleep 100" } }] }
- { say: It is over. }`;
const IN_WORDS = `- { say: a b c d e f g h i j k l m n o p q r s t, delay_ms: 100 }`;
/** Not over before its server is asked to stop. */
const IN_MANY_WORDS = `- { say: ${"word ".repeat(600)}, delay_ms: 100 }`;

// Above a store it does not matter which.
const [{ start, program }] = SHARED_STORES;
const shared = await start();
afterAll(() => shared?.close());

needing(shared, program).describe(`kill -9 of a worker`, () => {
  test("another continues its run, whose viewer loses nothing, and a new worker replaces it", async () => {
    const server = await serveTwo(shared, { script: IN_A_COMMAND, agent: { backend: { type: "local" } } });
    const viewer = await post(`${server.url}/threads/t1/runs`, { input: "go" });
    await viewer.until(({ event }) => event === "on_tool_progress");
    const worker = await workerWithRun(server);
    const before = pidsOf(server).get(worker) ?? expect.fail(`There is no worker ${worker}.`);
    process.kill(before, "SIGKILL");
    // Its viewers are cut off if they were its own.
    await viewer.ended().catch(() => {});
    const events = await seenOn(viewer, server);
    expect(names(events)).toContain("run_resumed");
    expect(dataOf(events, "done")[0]?.status).toBe("success");
    await expect.poll(() => pidsOf(server).get(worker)).not.toBe(before);
    server.child.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    expect(await contradictionsIn(server.store)).toEqual([]);
  });
});

needing(shared, program).describe(`SIGTERM of a server with workers`, () => {
  test("hands its runs over within the grace period, and the next server continues them", async () => {
    const config = { shutdown: { grace: "0.1s" } };
    const port = String(await freePort());
    const database = await shared?.database();
    const again = {
      ...shared,
      kind: shared?.kind ?? "redis",
      database: async () => database ?? "",
    } as typeof shared;
    const one = await serveTwo(again, { script: IN_MANY_WORDS, config, env: { PORT: port } });
    const viewer = await post(`${one.url}/threads/t1/runs`, { input: "go" });
    await viewer.until(({ event }) => event === "on_chat_model_stream");
    one.child.kill("SIGTERM");
    await viewer.ended();
    expect(viewer.others.at(-1)).toContain("server_shutdown");
    expect(await one.exited).toBe(0);
    const next = await serveTwo(again, { dir: one.dir, script: IN_WORDS, config, env: { PORT: port } });
    const events = await seenOn(viewer, next);
    expect(dataOf(events, "done")[0]?.status).toBe("success");
    expect(await contradictionsIn(next.store)).toEqual([]);
  });
});

needing(shared, program).describe(`without its store`, () => {
  test("killed workers return once the store does", async () => {
    const own = await start();
    onTestFinished(() => own?.close());
    const server = await serveTwo(own, { env: { PORT: String(await freePort()) } });
    await own?.kill();
    process.kill(pidsOf(server).get(1) ?? expect.fail("There is no worker 1."), "SIGKILL");
    await expect
      .poll(() => logOf(server).filter(({ msg }) => msg.startsWith("a worker ended")).length)
      .toBeGreaterThanOrEqual(2);
    const before = new Set(pidsOf(server).values());
    await own?.start();
    await expect.poll(() => new Set([...before, ...pidsOf(server).values()]).size).toBe(3);
    expect((await ask(`${server.url}/health`)).status).toBe(200);
  });
});

needing(shared, program).describe("a server whose workers are all killed", () => {
  test("returns 503 until a worker serves again, however often that happens, and refuses no connection, on a port that the system chose", async () => {
    const server = await serveTwo(shared);
    const results = new Set<string>();
    let isOver = false;
    onTestFinished(() => {
      isOver = true;
    });
    const client = async () => {
      while (!isOver) results.add(await resultOf(server.url));
    };
    const clients = Array.from({ length: 4 }, client);
    for (let round = 0; round < 2; round++) {
      const before = pidsOf(server);
      for (const pid of before.values()) process.kill(pid, "SIGKILL");
      await expect
        .poll(() => [...pidsOf(server)].filter(([worker, pid]) => before.get(worker) !== pid).length)
        .toBe(2);
      await expect.poll(() => resultOf(server.url)).toBe("200");
    }
    isOver = true;
    await Promise.all(clients);
    expect(results).toContain("503 unavailable");
    // What a killed worker had taken breaks.
    for (const broken of ["ECONNRESET", "UND_ERR_SOCKET"]) results.delete(broken);
    expect([...results].sort()).toEqual(["200", "503 unavailable"]);
    const restarts = logOf(server).filter(({ restart_ms }) => restart_ms === 0);
    expect(restarts).toHaveLength(2);
  });
});

/** The status of an answer, with its code if it is an error; or how the connection failed. */
async function resultOf(url: string): Promise<string> {
  try {
    const answer = await ask(`${url}/health`);
    return answer.ok ? "200" : `${answer.status} ${((await answer.json()) as { code: string }).code}`;
  } catch (error) {
    return String(((error as Error).cause as { code?: string } | undefined)?.code);
  }
}

// The process counts how often its workers end, not what they miss.
needing(shared, program).describe("without its store", () => {
  test("a server whose workers have all ended and cannot start ends after a few attempts", async () => {
    const own = await start();
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

needing(shared, program).describe("a worker that hangs", () => {
  test("gets at most one new connection, and after it has ended, the other worker serves that one and the rest", async () => {
    const server = await serveTwo(shared);
    const pid = pidsOf(server).get(1) ?? expect.fail("There is no worker 1.");
    process.kill(pid, "SIGSTOP");
    const clients = Array.from({ length: 8 }, () => clientOf(server.url));
    await expect.poll(() => clients.filter(({ isOver }) => isOver()).length).toBe(7);
    expect(clients.filter(({ answered }) => answered())).toHaveLength(7);
    process.kill(pid, "SIGKILL");
    for (const { over } of clients) await over;
    expect(clients.filter(({ answered }) => answered())).toHaveLength(8);
  });

  test("is killed some time after the others have ended, if the server is asked twice to stop", async () => {
    const server = await serveTwo(shared);
    process.kill(pidsOf(server).get(1) ?? expect.fail("There is no worker 1."), "SIGSTOP");
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
