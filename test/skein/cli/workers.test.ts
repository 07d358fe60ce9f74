import { once } from "node:events";
import { createServer } from "node:net";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { needing } from "../../support/needing.ts";
import { skein } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";
import { sharedRedis } from "../../support/shared-stores.ts";
import { post } from "../../support/sse.ts";
import { ask, pidsOf, samplesOf, serveTwo } from "../../support/workers.ts";

const redis = await sharedRedis();
afterAll(() => redis?.close());

const SLOW = `- { say: a b c d e f g h i j k l m n o p q r s t, delay_ms: 100 }`;

describe.each(["sqlite", "memory"])("--workers 2 with STORE=%s", (store) => {
  test("is refused, with the stores that support it", async () => {
    const dir = await temporaryFolder();
    const { exited, output } = skein(["serve", "--workers", "2"], { STORE: store, DATA_DIR: dir }, dir);
    expect(await exited).toBe(1);
    expect(output()).toContain(
      `workers: 2 needs a store that several processes share, but STORE is ${store}`,
    );
    expect(output()).toMatch(/STORE=redis or STORE=postgres/);
  });
});

test.each(["0", "1.5", "two", "1000"])("--workers %s is refused", async (count) => {
  const dir = await temporaryFolder();
  const { exited, output } = skein(["serve", "--workers", count], { STORE: "redis" }, dir);
  expect(await exited).toBe(1);
  expect(output()).toMatch(/WORKERS: `.+` must be/);
});

needing(redis, "redis-server").describe("two workers", () => {
  test("share the requests of one port, and each one's /metrics shows both", async () => {
    const server = await serveTwo(redis);
    expect(server.output()).toContain("2 workers");
    for (let request = 0; request < 6; request++)
      expect((await ask(`${server.url}/health`)).status).toBe(200);
    // Each is asked once.
    for (let worker = 0; worker < 2; worker++)
      await expect
        .poll(() => samplesOf(server, 'skein_http_requests_total{route="/health"'))
        .toEqual(
          new Map([
            [1, 3],
            [2, 3],
          ]),
        );
    expect(new Set(pidsOf(server).values()).size).toBe(2);
  });

  test("end with the server on SIGTERM, after the run in progress", async () => {
    const server = await serveTwo(redis, { script: SLOW });
    const viewer = await post(`${server.url}/threads/t1/runs`, { input: "go" });
    server.child.kill("SIGTERM");
    expect((await viewer.ended()).at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    expect(await server.exited).toBe(0);
    for (const pid of pidsOf(server).values()) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });

  test("a port in use is reported once and ends the server", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void other.close());
    await once(other, "listening");
    const address = other.address();
    const port = String(typeof address === "object" ? address?.port : address);
    const starting = serveTwo(redis, { env: { PORT: port } });
    const { message } = await starting.then(
      () => new Error("It serves."),
      (error: Error) => error,
    );
    expect(message).toMatch(/ended with 1/);
    expect(message.match(/skein: .+/g)).toEqual([
      `skein: 127.0.0.1:${port} is taken. Set PORT to another port.`,
    ]);
  });
});
