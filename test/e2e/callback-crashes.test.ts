import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import {
  accept,
  answer,
  type Call,
  callbackTool,
  messagesOf,
  send,
  textIn,
} from "../support/callback-tool.ts";
import { freePort } from "../support/free-port.ts";
import { needing } from "../support/needing.ts";
import { serve } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";
import { USUAL_STORES } from "../support/shared-stores.ts";
import { post } from "../support/sse.ts";
import { contradictionsIn, placeOf } from "../support/store-check.ts";

/** Ends what hangs, as the default of one second would on a busy machine. */
const PATIENCE = { timeout: 60_000 };

/** Turns begin again with each user message, and a late result is one. */
const SCRIPT = `
- { say: "I read: {{user}}", call: [{ tool: freight }] }
- { say: "I continue." }`;

/** How to start servers that share `dir`, and know where a tool is. */
async function servers(allow: string, env: Record<string, string> = {}) {
  const dir = await temporaryFolder();
  await writeFile(
    join(dir, "agents-with-tools.yaml"),
    `agents: { assistant: { model: "scripted:${join(dir, "script.yaml")}", tools: [freight] } }`,
  );
  return async (port?: number) => {
    const PORT = String(port ?? (await freePort()));
    const settings = { PORT, PUBLIC_URL: `http://127.0.0.1:${PORT}`, HTTP_TOOLS_ALLOW: allow };
    return serve(dir, SCRIPT, { AGENTS_FILE: join(dir, "agents-with-tools.yaml"), ...settings, ...env });
  };
}

/** Leaves the first call open; answers those that a late result leads to. */
const hangingTool = () => {
  let count = 0;
  return callbackTool((call) => {
    if (count++ > 0) answer(call, "at once");
  });
};

describe("a server that is killed before a callback tool has answered", () => {
  test("accepts the tool's result after the next server has declared the outcome unknown", async () => {
    const tool = await hangingTool();
    const start = await servers(tool.allow);
    const first = await start();
    expect((await tool.register(first.url)).status).toBe(201);
    await send(`${first.url}/threads/t/runs`, { input: "go", background: true });
    await vi.waitUntil(() => tool.calls[0], PATIENCE);
    first.child.kill("SIGKILL");
    await first.exited;

    const { url } = await start(Number(new URL(first.url).port));
    const said = async () => textIn(await messagesOf(url, "t"), "assistant");
    await expect.poll(said).toEqual(["I read: go", "I continue."]);
    expect(textIn(await messagesOf(url, "t"), "tool")).toEqual([
      expect.stringMatching(/^Outcome unknown: .* arrives as a separate message\.$/),
    ]);
    expect((await send(tool.calls[0]?.result_url ?? "", { result: "it is done" })).status).toBe(204);
    await expect.poll(async () => (await said())[2]).toContain("it is done");
    expect((await send(tool.calls[0]?.result_url ?? "", { result: "again" })).status).toBe(404);
    expect((await send(tool.calls[0]?.result_url ?? "", { result: "it is done" })).status).toBe(204);
  });

  test("repeats a repeatable call with the same address, which accepts one result", async () => {
    const tool = await callbackTool(() => {});
    const start = await servers(tool.allow);
    const first = await start();
    await tool.register(first.url, "freight", { idempotent: true });
    await send(`${first.url}/threads/t/runs`, { input: "go", background: true });
    await vi.waitUntil(() => tool.calls[0], PATIENCE);
    first.child.kill("SIGKILL");
    await first.exited;

    const { url } = await start(Number(new URL(first.url).port));
    await vi.waitUntil(() => tool.calls[1], PATIENCE);
    const [before, again] = tool.calls;
    expect(again?.result_url).toBe(before?.result_url);
    expect((await send(before?.result_url ?? "", { result: "once" })).status).toBe(204);
    if (again) accept(again);
    await expect.poll(async () => textIn(await messagesOf(url, "t"), "tool")).toEqual(["once"]);
  });
});

for (const { start: startStore, program } of USUAL_STORES) {
  const shared = await startStore();
  afterAll(() => shared?.close());

  needing(shared, program).describe(`two servers on one ${program}`, () => {
    test("lose no result that one of them accepts just as the other accepts a new message", async () => {
      const tool = await callbackTool((call: Call) => {
        if (tool.calls.filter(({ thread_id }) => thread_id === call.thread_id).length > 1)
          answer(call, "at once");
        else accept(call);
      });
      const { kind = "", database = async () => "" } = shared ?? {};
      const url = await database();
      const env = { STORE: kind, [`${kind.toUpperCase()}_URL`]: url };
      const start = await servers(tool.allow, env);
      const [one, other] = [await start(), await start()];
      await tool.register(one.url);
      const threads = Array.from({ length: 12 }, (_, n) => `t${n}`);
      for (const thread of threads) {
        await (await post(`${one.url}/threads/${thread}/runs`, { input: "go" })).ended();
      }
      expect(tool.calls).toHaveLength(threads.length);

      const outcomes = await Promise.all(
        threads.map(async (thread, n) => {
          const { result_url = "" } = tool.calls.find(({ thread_id }) => thread_id === thread) ?? {};
          const deliver = () =>
            send(result_url.replace(one.url, other.url), { result: `result of ${thread}` });
          const write = () => send(`${one.url}/threads/${thread}/runs`, { input: "new", background: true });
          const [a, b] = await Promise.all(n % 2 ? [deliver(), write()] : [write(), deliver()]);
          return { thread, delivered: (n % 2 ? a : b).status };
        }),
      );
      for (const { thread, delivered } of outcomes) {
        const results = async () => {
          const all = await messagesOf(other.url, thread);
          const texts = [...textIn(all, "tool"), ...textIn(all, "user")];
          return texts.filter((text) => text.includes(`result of ${thread}`)).length;
        };
        // A new message does not close the call: in either order, the result counts.
        expect(delivered, thread).toBe(204);
        await expect.poll(results).toBe(1);
      }
      expect(await contradictionsIn(placeOf(shared?.kind, url))).toEqual([]);
    });
  });
}
