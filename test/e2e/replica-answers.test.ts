// What a run waits for comes to another replica than the one that asked, which may be gone.

import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import type { Interrupt } from "../../src/protocol/interrupt.ts";
import { dataOf, textSeen } from "../support/drain.ts";
import { needing } from "../support/needing.ts";
import { killed } from "../support/process.ts";
import { replicasOn } from "../support/replicas.ts";
import { SHARED_STORES } from "../support/shared-stores.ts";
import { post, view } from "../support/sse.ts";

const send = (url: string, body: unknown) =>
  fetch(url, {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify(body),
  });

/** A tool that accepts every call; and where the result of the newest one is to be sent. */
async function slowTool() {
  let place = "";
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    place = (JSON.parse(Buffer.concat(chunks).toString()) as { result_url: string }).result_url;
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

needing(shared, program).describe(`an approval that one replica asks for`, () => {
  async function asked(thread: string) {
    await rm(mark, { force: true });
    const { one, other } = await replicas.two();
    const viewer = await post(`${one.url}/threads/${thread}/runs`, { input: "go", agent: "approved" });
    const events = await viewer.ended();
    expect(dataOf(events, "done")[0]?.status).toBe("interrupted");
    const run = viewer.headers.get("location")?.replace(/\/events$/, "");
    const answer = async () => {
      const { items } = (await (await fetch(`${other.url}/threads/${thread}/interrupts`)).json()) as {
        items: Interrupt[];
      };
      expect(items).toMatchObject([{ kind: "approval", name: "execute" }]);
      const answers = [{ id: items[0]?.id, decision: "approve" }];
      return (await post(`${other.url}${run}/resume`, { answers })).ended();
    };
    return { one, other, answer, marks: () => readFile(mark, "utf8") };
  }

  test("is given on another, and the call runs there once", async () => {
    const { one, answer, marks } = await asked("t1");
    const events = await answer();
    expect(checkGrammar(events)).toEqual([]);
    expect(dataOf(events, "done")[0]?.status).toBe("success");
    expect(textSeen(events)).toBe("It is over.");
    expect(await marks()).toBe("done\n");
    expect(await (await fetch(`${one.url}/threads/t1/interrupts`)).json()).toMatchObject({ items: [] });
  });

  test("outlives that replica", async () => {
    const { one, answer, marks } = await asked("t2");
    await killed(one);
    const events = await answer();
    expect(checkGrammar(events)).toEqual([]);
    expect(dataOf(events, "done")[0]?.status).toBe("success");
    expect(await marks()).toBe("done\n");
  });
});

needing(shared, program).describe(`a tool's later result`, () => {
  async function waiting(thread: string) {
    const { one, other } = await replicas.two();
    const parameters = { type: "object", properties: {} };
    const registered = { name: "freight", description: "A quote.", parameters };
    const reply = await send(`${other.url}/tools`, { ...registered, callback_url: `http://${tool.at}/` });
    expect(reply.status).toBe(201);
    const run = await post(`${one.url}/threads/${thread}/runs`, { input: "go", agent: "delivered" });
    expect(dataOf(await run.ended(), "done")[0]?.status).toBe("interrupted");
    const deliver = (price: number) => send(other.url + tool.place(), { result: { price } });
    return { one, other, deliver };
  }

  test.each([
    ["wakes the thread on another", "t3", false],
    ["wakes the thread although the replica that asked was killed", "t4", true],
  ])("%s", async (_, thread, isGone) => {
    const { one, other, deliver } = await waiting(thread);
    const viewer = await view(`${other.url}/threads/${thread}/events`);
    if (isGone) await killed(one);
    expect((await deliver(17)).status).toBe(204);
    await viewer.until((event) => event.event === "done" && event.data.status === "success");
    const events = viewer.seen.map(({ event }) => event);
    expect(dataOf(events, "on_tool_end").at(-1)?.output).toBe('{"price":17}');
    expect(textSeen(events)).toBe("There you are.");
    viewer.leave();
    // A repetition is the same delivery. Another result is refused.
    expect((await deliver(17)).status).toBe(204);
    expect((await deliver(18)).status).toBe(404);
    expect((await fetch(`${other.url}/tools/freight`, { method: "DELETE" })).status).toBe(204);
  });
});
