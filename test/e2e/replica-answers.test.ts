// What a run waits for comes to another replica after the one that asked has died.

import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterAll, expect } from "vitest";
import type { Interrupt } from "../../src/protocol/interrupt.ts";
import { send } from "../support/callback-tool.ts";
import { dataOf, textSeen } from "../support/drain.ts";
import { needing } from "../support/needing.ts";
import { killed } from "../support/process.ts";
import { replicasOn } from "../support/replicas.ts";
import { SHARED_STORES } from "../support/shared-stores.ts";
import { post, view } from "../support/sse.ts";

/** A tool that accepts every call; and where the result of the newest one is to be sent. */
async function slowTool() {
  let place = "";
  const server = createServer(async (request, response) => {
    place = ((await json(request)) as { result_url: string }).result_url;
    response.writeHead(202).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  afterAll(() => void server.close().closeAllConnections());
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("A server that listens has an address.");
  return { at: `127.0.0.1:${address.port}`, place: () => new URL(place).pathname };
}

const tool = await slowTool();
const folder = await mkdtemp(join(tmpdir(), "skein-"));
afterAll(() => rm(folder, { recursive: true, force: true }));
const mark = join(folder, "marks");

const AGENTS = {
  approved: {
    script: `
- { call: [{ tool: execute, args: { command: "echo done | tee -a ${mark}" } }] }
- { say: It is over. }`,
    options: { backend: { type: "local" }, permissions: { rules: [{ ask: "execute" }] } },
  },
  delivered: {
    script: `
- { call: [{ tool: freight, args: {} }] }
- { say: There you are. }`,
    options: { tools: ["freight"] },
  },
};

// Above a store it does not matter which.
const [{ start, program }] = SHARED_STORES;
const shared = await start();
const settings = { public_url: "http://skein.example", http_tools: { allow: tool.at } };
const replicas = replicasOn(shared, AGENTS, settings);
afterAll(async () => {
  await replicas.close();
  await shared?.close();
});
const { test } = needing(shared, program);

test("an approval is given on another replica after the one that asked was killed, and the call runs once", async () => {
  const { one, other } = await replicas.two();
  const viewer = await post(`${one.url}/threads/t1/runs`, { input: "go", agent: "approved" });
  expect(dataOf(await viewer.ended(), "done")[0]?.status).toBe("interrupted");
  await killed(one);
  const open = await fetch(`${other.url}/threads/t1/interrupts`);
  const { items } = (await open.json()) as { items: Interrupt[] };
  expect(items).toMatchObject([{ kind: "approval", name: "execute" }]);
  const answers = [{ id: items[0]?.id, decision: "approve" }];
  const resume = viewer.headers.get("location")?.replace(/events$/, "resume");
  const events = await (await post(other.url + resume, { answers })).ended();
  expect(dataOf(events, "done")[0]?.status).toBe("success");
  expect(textSeen(events)).toBe("It is over.");
  expect(await readFile(mark, "utf8")).toBe("done\n");
});

test("a tool's later result wakes the thread although the replica that asked was killed", async () => {
  const { one, other } = await replicas.two();
  const quote = { name: "freight", description: "A quote.", parameters: { type: "object", properties: {} } };
  const registered = await send(`${other.url}/tools`, { ...quote, callback_url: `http://${tool.at}/` });
  expect(registered.status).toBe(201);
  const run = await post(`${one.url}/threads/t2/runs`, { input: "go", agent: "delivered" });
  expect(dataOf(await run.ended(), "done")[0]?.status).toBe("interrupted");
  const deliver = async (price: number) =>
    (await send(other.url + tool.place(), { result: { price } })).status;

  const viewer = await view(`${other.url}/threads/t2/events`);
  await killed(one);
  expect(await deliver(17)).toBe(204);
  await viewer.until((event) => event.event === "done" && event.data.status === "success");
  const events = viewer.seen.map(({ event }) => event);
  expect(dataOf(events, "on_tool_end").at(-1)?.output).toBe('{"price":17}');
  expect(textSeen(events)).toBe("There you are.");
  viewer.leave();
  // A repetition is the same delivery. Another result is refused.
  expect([await deliver(17), await deliver(18)]).toEqual([204, 404]);
});
