// Clients that come while the server is busy.

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { startServer } from "../../support/server.ts";

const CONNECTIONS = 1500;
/** Ends the wait when not all can connect, or when their worker does not begin. */
const PATIENCE_MS = 90_000;

test("1,500 clients that connect while the server is busy are connected immediately, and answered", async () => {
  const { url } = await startServer({});
  const connected = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL("./crowd-worker.ts", import.meta.url), {
    workerData: { port: Number(new URL(url).port), connections: CONNECTIONS, connected },
  });
  const failed = once(worker, "message");
  await once(worker, "online");
  const end = performance.now() + PATIENCE_MS;
  for (let count = 0; count < CONNECTIONS && performance.now() < end; count = Atomics.load(connected, 0))
    Atomics.wait(connected, 0, count, PATIENCE_MS);
  expect(Atomics.load(connected, 0)).toBe(CONNECTIONS);
  expect((await failed)[0]).toEqual([]);
});
