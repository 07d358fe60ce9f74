import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { defineHook, type HookDefinition } from "../../src/agent/core/hook.ts";
import { textOf } from "../../src/agent/core/message.ts";
import type { RunRecord } from "../../src/agent/core/records.ts";
import type { Turn } from "../../src/agent/models/scripted.ts";
import { responseIdOf } from "../../src/wires/openai/responses/ids.ts";
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
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

/** Ends what hangs, as the default of one second would on a busy machine. */
const PATIENCE = { timeout: 60_000 };

const AGENTS = `agents: { assistant: { model: "scripted:test", tools: ["freight", "slow"] } }`;
const FREIGHT: Turn = { call: [{ tool: "freight", id: "call_1" }] };

/** A server whose thread `t` waits for the result of `call`, which the tool has accepted. */
async function waiting(
  script: Turn[],
  onCall: (call: Call) => void = accept,
  more: object = {},
  { first = FREIGHT, hooks = [] }: { first?: Turn; hooks?: HookDefinition[] } = {},
) {
  const tool = await callbackTool(onCall);
  const port = await freePort();
  const config = {
    ...{ listen: { port }, public_url: `http://127.0.0.1:${port}`, http_tools: { allow: tool.allow } },
  };
  const { url, app } = await startServer({ script: [first, ...script], agents: AGENTS, config, hooks });
  for (const name of ["freight", "slow"]) expect((await tool.register(url, name, more)).status).toBe(201);
  await (await post(`${url}/threads/t/runs`, { input: "go" })).ended();
  const [call] = tool.calls;
  if (!call) throw new Error("The tool was not called.");
  return { url, app, call, tool, messages: () => messagesOf(url, "t") };
}

async function newestRun(url: string): Promise<string> {
  const { items } = (await (await fetch(`${url}/threads/t/runs`)).json()) as { items: { id: string }[] };
  return items[0]?.id ?? "";
}

/** A hook that, once told to, holds every call until its run ends. */
function holdingCalls() {
  let isHolding = false;
  const entered = Promise.withResolvers<void>();
  const hook = defineHook({
    name: "holding",
    options: z.strictObject({}),
    activeByDefault: () => true,
    create: () => ({
      name: "holding",
      async *wrapToolCall(request, next) {
        if (!isHolding) return yield* next(request);
        entered.resolve();
        await once(request.signal, "abort");
        throw request.signal.reason;
      },
    }),
  });
  const hold = () => {
    isHolding = true;
  };
  return { hook, hold, entered: entered.promise };
}

test("the result of a pending call comes from its tool, not from a client that writes messages", async () => {
  const { url, call, messages } = await waiting([{ say: "Good." }]);
  const forged = { type: "function_call_output", call_id: "call_1", output: "forged" };
  const result = { type: "tool", tool_call_id: "call_1", content: "forged" };
  for (const [path, body, status] of [
    ["/v1/conversations/t/items", { items: [forged] }, 400],
    ["/v1/responses", { model: "assistant", input: [forged], conversation: "t" }, 409],
    ["/langgraph/threads/t/state", { values: { messages: result } }, 422],
  ] as const)
    expect([path, (await send(url + path, body)).status]).toEqual([path, status]);
  await send(call.result_url, { result: "real" });
  await expect.poll(async () => textIn(await messages(), "tool"), PATIENCE).toEqual(["real"]);
});

test("an accepted call is pending if the user writes something else, and its result arrives as a message", async () => {
  const { url, call, messages } = await waiting([{ say: "Meanwhile." }, { say: "Now I know." }]);
  await (await post(`${url}/threads/t/runs`, { input: "another thing" })).ended();
  const [stand] = textIn(await messages(), "tool");
  expect(stand).toMatch(/^Pending: the server of `freight` has accepted this call/);
  expect((await messages()).at(-1)).toMatchObject({ content: "Meanwhile." });

  expect((await send(call.result_url, { result: { price: 42 } })).status).toBe(204);
  await expect.poll(async () => (await messages()).at(-1)?.content).toBe("Now I know.");
  expect(textIn(await messages(), "user").at(-1)).toContain('{"price":42}');
  expect((await send(call.result_url, { result: 43 })).status).toBe(404);
  expect(textIn(await messages(), "user")).toHaveLength(3);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toContain('skein_deferred_results_total{outcome="late"} 1\n');
  expect(metrics).not.toContain('skein_deferred_results_total{outcome="delivered"}');
});

test("a front end that waits for a call's result sees its turn end if the user writes something else", async () => {
  const { url } = await waiting([{ say: "Meanwhile." }]);
  const { items } = (await (await fetch(`${url}/threads/t/runs`)).json()) as { items: RunRecord[] };
  const [run] = items;
  if (!run) throw new Error("There is no run.");
  const response = `${url}/v1/responses/${responseIdOf(run)}`;
  const streams = [`${url}/ai-sdk/assistant/chat/t/stream`, `${response}?stream=true`].map((each) =>
    fetch(each),
  );
  const open = await Promise.all(streams);
  await (await post(`${url}/threads/t/runs`, { input: "another thing" })).ended();
  const [chat = "", events = ""] = await Promise.all(open.map((each) => each.text()));
  expect(chat).toContain('{"type":"abort","reason":"superseded"}');
  expect(events).toContain("event: response.");
  for (const each of [chat, events]) expect(each).not.toContain("Meanwhile.");
  expect(await (await fetch(response)).json()).toMatchObject({ status: "cancelled" });
});

test("stopping a chat that waits for a call's result ends its stream, and no result is accepted", async () => {
  const { url, call, messages } = await waiting([{ say: "Good." }]);
  const chat = `${url}/ai-sdk/assistant/chat/t`;
  const stream = await fetch(`${chat}/stream`, { signal: AbortSignal.timeout(PATIENCE.timeout) });
  expect((await fetch(`${chat}/stop`, { method: "POST" })).status).toBe(204);
  expect(await stream.text()).toContain('{"type":"abort","reason":"cancelled"}');
  expect((await send(call.result_url, { result: 42 })).status).toBe(404);
  expect(textIn(await messages(), "tool")[0]).toMatch(/^Cancelled/);
});

test("a tool's secret is masked if its late result repeats it", async () => {
  const secret = "tok-123456";
  const { url, call, messages } = await waiting([{ say: "Meanwhile." }, { say: "Now I know." }], accept, {
    headers: { authorization: `Bearer ${secret}` },
  });
  await (await post(`${url}/threads/t/runs`, { input: "another thing" })).ended();
  await send(call.result_url, { error: `I was sent Bearer ${secret}` });
  await expect.poll(async () => (await messages()).at(-1)?.content).toBe("Now I know.");
  expect(textIn(await messages(), "user").at(-1)).toContain("The call failed: I was sent ***");
  expect(JSON.stringify(await messages())).not.toContain(secret);
});

test("a result that arrives during another run is read in that run", async () => {
  let slow: Call | undefined;
  const onCall = (call: Call) => {
    if (call.name === "freight") accept(call);
    else slow = call;
  };
  const { url, call, messages } = await waiting(
    [{ call: [{ tool: "slow" }] }, { say: "All there." }],
    onCall,
  );
  const run = await post(`${url}/threads/t/runs`, { input: "another thing" });
  await vi.waitUntil(() => slow, PATIENCE);
  expect((await send(call.result_url, { result: "forty-two" })).status).toBe(204);
  await vi.waitUntil(() => run.seen.some(({ event }) => event.event === "on_tool_start"), PATIENCE);
  if (slow) answer(slow, "done");
  await run.ended();
  const [late, last] = (await messages()).slice(-2);
  expect(late).toMatchObject({ role: "user", content: expect.stringContaining("forty-two") });
  expect(last).toMatchObject({ role: "assistant", content: "All there." });
});

test("a result that arrives after the active run has answered is read by another run", async () => {
  const ending = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  let ends = 0;
  const hook = defineHook({
    name: "slow_end",
    options: z.strictObject({}),
    activeByDefault: () => true,
    create: () => ({
      name: "slow_end",
      async afterAgent() {
        if (++ends !== 2) return;
        ending.resolve();
        await end.promise;
      },
    }),
  });
  const script = [{ say: "Meanwhile." }, { say: "Now I know." }];
  const { url, call, messages } = await waiting(script, accept, {}, { hooks: [hook] });
  const run = await post(`${url}/threads/t/runs`, { input: "another thing" });
  await ending.promise;
  expect((await send(call.result_url, { result: "forty-two" })).status).toBe(204);
  end.resolve();
  await run.ended();
  await expect.poll(async () => (await messages()).at(-1)?.content, PATIENCE).toBe("Now I know.");
  expect(textIn(await messages(), "user").filter((text) => text.includes("forty-two"))).toHaveLength(1);
});

test("a result does not close the thread's open question, but follows it", async () => {
  let accepted = 0;
  const script = [{ call: [{ tool: "slow", id: "call_2" }] }, { say: "The second." }, { say: "The first." }];
  const { url, call, tool, messages } = await waiting(script, (each) => {
    accepted++;
    accept(each);
  });
  await (await post(`${url}/threads/t/runs`, { input: "another thing" })).ended();
  expect(accepted).toBe(2);
  expect((await send(call.result_url, { result: "first result" })).status).toBe(204);
  expect((await send(tool.calls[1]?.result_url ?? "", { result: "second result" })).status).toBe(204);
  await expect.poll(async () => textIn(await messages(), "user").at(-1)).toContain("first result");
  expect(textIn(await messages(), "tool").at(-1)).toBe("second result");
});

test("a cancelled call accepts no result, and warns that the tool may still execute it", async () => {
  const { url, call, messages } = await waiting([]);
  expect((await send(`${url}/threads/t/runs/${await newestRun(url)}/cancel`, {})).status).toBe(200);
  expect(textIn(await messages(), "tool")[0]).toMatch(/^Cancelled: the tool's server had accepted this call/);
  const refused = await send(call.result_url, { result: 1 });
  expect(refused.status).toBe(404);
  expect(await refused.json()).toMatchObject({ detail: expect.stringContaining("the call has its result") });
});

test("an accepted result is in the thread even if the run that should read it is cancelled", async () => {
  const { hook, hold, entered } = holdingCalls();
  const first = { call: [...(FREIGHT.call ?? []), { tool: "slow", id: "call_2" }] };
  const { url, call, messages } = await waiting([], accept, {}, { first, hooks: [hook] });
  hold();
  expect((await send(call.result_url, { result: "forty-two" })).status).toBe(204);
  await entered;
  expect((await send(`${url}/threads/t/runs/${await newestRun(url)}/cancel`, {})).status).toBe(200);
  expect(textIn(await messages(), "tool").toSorted()).toEqual([
    expect.stringMatching(/^Cancelled: the tool's server had accepted this call/),
    "forty-two",
  ]);
});

test("a call that is cancelled before the tool has answered warns that the tool may have executed it", async () => {
  const tool = await callbackTool(() => {});
  const { url } = await startServer({
    script: [FREIGHT],
    agents: AGENTS,
    config: { http_tools: { allow: tool.allow } },
  });
  expect((await tool.register(url)).status).toBe(201);
  await send(`${url}/threads/t/runs`, { input: "go", background: true });
  await vi.waitUntil(() => tool.calls[0], PATIENCE);
  await send(`${url}/threads/t/runs/${await newestRun(url)}/cancel`, {});
  const [said] = textIn(await messagesOf(url, "t"), "tool");
  expect(said).toBe("The run was cancelled. The call's effect is unknown.");
});

test("a very long result is shortened in the middle", async () => {
  const { url, call, messages } = await waiting([{ say: "Meanwhile." }, { say: "Long." }]);
  await (await post(`${url}/threads/t/runs`, { input: "another thing" })).ended();
  await send(call.result_url, { result: `begin ${"x".repeat(100_000)} end` });
  await expect.poll(async () => (await messages()).at(-1)?.content).toBe("Long.");
  const text = textOf((await messages()).findLast(({ role }) => role === "user")?.content ?? "");
  expect(text.length).toBeLessThan(81_000);
  expect(text).toMatch(/begin x+\s+\.\.\. \(truncated \d+ characters\) \.\.\.\s+x+ end$/);
});

test("the next run of a fork learns that a call is pending in the first thread", async () => {
  const { url, tool } = await waiting([{ say: "I see." }]);
  expect((await send(`${url}/threads/t/fork`, { id: "copy" })).status).toBe(201);
  await (await post(`${url}/threads/copy/runs`, { input: "And now?" })).ended();
  expect(textIn(await messagesOf(url, "copy"), "tool")).toEqual([
    expect.stringMatching(/^Pending in the thread that this one was forked from/),
  ]);
  expect(tool.calls).toHaveLength(1);
});

test("a delivery that is repeated because its response was lost is accepted again and changes nothing", async () => {
  const { url, call, messages } = await waiting([{ say: "I see." }]);
  const deliver = (result: string) => send(call.result_url, { result }).then(({ status }) => status);
  expect(await deliver("20 EUR")).toBe(204);
  expect(await deliver("20 EUR")).toBe(204);
  await expect.poll(async () => textIn(await messages(), "assistant").at(-1), PATIENCE).toBe("I see.");
  await expect
    .poll(
      async () => ((await (await fetch(`${url}/threads/t`)).json()) as { status: string }).status,
      PATIENCE,
    )
    .toBe("idle");
  expect(await deliver("20 EUR")).toBe(204);
  expect(await deliver("30 EUR")).toBe(404);
  expect(textIn(await messages(), "tool")).toEqual(["20 EUR"]);
  expect(await send(`${url}/tool-results/tr_unknown`, { result: "20 EUR" })).toMatchObject({ status: 404 });
});
