import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/agent/core/tool.ts";
import type { Turn } from "../../../src/agent/models/scripted.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { createHub, type StreamCallbacks, streamTo } from "../../../src/skein/adapters/index.ts";
import { agentWith, collect, runtimeWith } from "../../support/library.ts";
import { temporaryFolder } from "../../support/server.ts";

const add = defineTool({
  name: "add",
  description: "Adds.",
  parameters: z.object({ a: z.number() }),
  execute: ({ a }) => String(a + 1),
});

const SCRIPT: Turn[] = [
  { think: "Let me add.", say: "Adding.", call: [{ tool: "add", id: "c1", args: { a: 1 } }] },
  { call: [{ tool: "add", id: "c2" }] },
  { say: "Two." },
];
const spawn = (script: Turn[] = SCRIPT) =>
  runtimeWith().spawn(agentWith(script, { tools: [add] }), { input: "go" });

/** Callbacks that record their arguments. */
function recording(): { told: string[]; callbacks: Required<StreamCallbacks> } {
  const told: string[] = [];
  const callbacks: Required<StreamCallbacks> = {
    onTextDelta: (text) => void told.push(`text ${text}`),
    onReasoningStart: () => void told.push("reasoning"),
    onReasoningDelta: (_, text) => void told.push(`thinks ${text}`),
    onReasoningEnd: (_, text) => void told.push(`thought ${text}`),
    onToolCall: ({ id, name, args }) => void told.push(`call ${id} ${name} ${JSON.stringify(args)}`),
    onToolResult: ({ tool_call_id, content, is_error }) =>
      void told.push(`${is_error ? "error" : "result"} ${tool_call_id} ${content}`),
    onComplete: () => void told.push("complete"),
    onError: (error) => void told.push(`failed ${(error as Error).message}`),
  };
  return { told, callbacks };
}

test("callbacks receive each kind of event, and the end of the run last", async () => {
  const { told, callbacks } = recording();
  await streamTo(spawn(), callbacks);
  expect(told).toEqual([
    ...["reasoning", "thinks Let", "thinks  me", "thinks  add.", "thought Let me add.", "text Adding."],
    ...['call c1 add {"a":1}', "result c1 2", "call c2 add {}"],
    expect.stringMatching(/^error c2 Invalid arguments/),
    ...["text Two.", "complete"],
  ]);
});

test("callbacks and hubs receive no events of subagents", async () => {
  const helper = agentWith([{ call: [{ tool: "add", id: "h1", args: { a: 1 } }] }, { say: "Helped." }], {
    ...{ name: "helper", description: "Helps.", tools: [add] },
  });
  const tasks = [{ agent: "helper", task: "Help", context: "none" }];
  const lead = agentWith([{ call: [{ tool: "delegate", id: "l1", args: { tasks } }] }, { say: "Done." }], {
    subagents: [helper],
  });
  const handle = runtimeWith().spawn(lead);
  const hub = createHub();
  const heard: string[] = [];
  hub.agent.subscribe((event) => heard.push("id" in event ? `${event.type} ${event.id}` : event.type));
  hub.tool.subscribe(({ type, id }) => heard.push(`${type} ${id}`));
  hub.attach(handle);
  const { told, callbacks } = recording();
  await handle.send("go");
  await streamTo(handle, callbacks);
  expect((await collect(handle.events())).filter(({ path }) => path).length).toBeGreaterThan(4);
  expect(told).toEqual([
    expect.stringContaining("call l1 delegate"),
    expect.stringContaining("result l1 [helper-help-1] agent helper: completed"),
    ...["text Done.", "complete"],
  ]);
  const hubTold = ["tool_call l1", "started l1", "tool_result l1", "completed l1", "text_delta", "complete"];
  await expect.poll(() => heard).toEqual(hubTold);
});

test("callbacks receive a failure, a cancellation and a limit as one error", async () => {
  const failing = recording();
  await streamTo(spawn([{ fail: { code: "model_auth", message: "no key" } }]), failing.callbacks);
  expect(failing.told).toEqual(["failed no key"]);
  const cancelled = recording();
  const handle = spawn([{ say: "on and on", delay_ms: 60_000 }]);
  const streaming = streamTo(handle, cancelled.callbacks);
  await handle.cancel();
  await streaming;
  expect(cancelled.told).toEqual(["failed The run was cancelled."]);
});

test("callbacks do not receive the end of a run that the next process continues", async () => {
  const stores = createSqliteStores({ dataDir: await temporaryFolder() });
  onTestFinished(() => stores.close());
  const runtime = runtimeWith({ stores });
  const agent = agentWith([{ say: "on and on", delay_ms: 60_000 }]);
  const { told, callbacks } = recording();
  const handle = runtime.spawn(agent, { input: "go" });
  const streaming = streamTo(handle, callbacks);
  await expect.poll(() => handle.phase()).toEqual({ name: "calling_model" });
  await runtime.close();
  await streaming;
  expect(told).toEqual([expect.stringMatching(/^failed The runtime was closed before run/)]);
  expect(await handle.status()).toBe("running");
});

test("a callback that throws cancels the run", async () => {
  const { told, callbacks } = recording();
  const wait = defineTool({
    ...{ name: "wait", description: "Waits.", parameters: z.object({}) },
    execute: async (_args, _call, { signal }) => {
      await once(signal, "abort");
      return "It was cancelled.";
    },
  });
  const script = [{ say: "one", call: [{ tool: "wait" }] }];
  const handle = runtimeWith().spawn(agentWith(script, { tools: [wait] }), { input: "go" });
  const onTextDelta = () => Promise.reject(new Error("the page was closed"));
  await streamTo(handle, { ...callbacks, onTextDelta });
  expect(told).toEqual(["failed the page was closed"]);
  expect((await handle.result).status).toBe("cancelled");
});

test("a hub publishes the actions of agents and tools to the subscribers of each topic", async () => {
  const failures: unknown[] = [];
  const hub = createHub((error) => failures.push(error));
  const agents: string[] = [];
  const tools: string[] = [];
  const over = Promise.withResolvers<void>();
  const handle = runtimeWith().spawn(agentWith(SCRIPT, { tools: [add] }));
  hub.agent.subscribe(() => {
    throw new Error("a bad listener");
  });
  hub.agent.subscribe(({ type, session_id, message_id }) => {
    expect(session_id).toBe(handle.id);
    expect(message_id).toMatch(/^msg_/);
    agents.push(type);
    if (type === "complete") over.resolve();
  });
  const leave = hub.tool.subscribe(() => tools.push("never"));
  leave();
  hub.tool.subscribe(({ type, id }) => tools.push(`${type} ${id}`));
  hub.attach(handle);
  await handle.send("go");
  await over.promise;
  expect(agents).toEqual([
    ...["text_delta", "tool_call", "tool_result", "tool_call", "tool_result", "text_delta", "complete"],
  ]);
  expect(tools).toEqual(["started c1", "completed c1", "started c2", "failed c2"]);
  expect(failures).toHaveLength(agents.length);
});
