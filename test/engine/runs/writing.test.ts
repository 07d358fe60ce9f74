// When a run waits for its store: never without need, and always before it does what others see.

import { expect, test } from "vitest";
import { z } from "zod";
import type { EventLog, Stores } from "../../../src/agent/core/stores.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { todos } from "../../../src/agent/hooks/todos.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { made } from "../../agent/hooks/made.ts";
import { ADA } from "../stores/fixture.ts";
import { managed, settledOf, sqliteStores } from "./managed.ts";

const { signal } = new AbortController();
const script = [{ call: [{ tool: "note" }] }, { say: "done" }];

const noting = (execute: () => string | Promise<string>) =>
  defineTool({ name: "note", description: "Notes.", parameters: z.object({}), execute });

/** `stores` that append through `append`. */
const appending = (stores: Stores, append: EventLog["append"]): Stores => ({
  ...stores,
  events: { ...stores.events, append },
});

test("a message that calls a tool, and the call, are in the thread before the tool is executed", async () => {
  const stores = await sqliteStores();
  const found: unknown[] = [];
  let thread_id = "";
  const tool = noting(async () => {
    const messages = await stores.threads.messages(ADA, thread_id);
    const runs = await stores.runs.list(ADA, thread_id, { limit: 1 });
    const run_id = runs.items[0]?.id ?? "";
    for await (const batch of stores.events.read({ owner: ADA, thread_id, run_id }, 0, signal)) {
      found.push(messages.at(-1)?.role, batch.at(-1)?.event);
      break;
    }
    return "ok";
  });
  const { runs, start } = managed(stores, { script, tools: [tool] });
  await runs.open();
  thread_id = "th_noted";
  const run = await start(ADA, "go", thread_id);
  await settledOf(runs, ADA, run);
  expect(found).toEqual(["assistant", "on_tool_start"]);
});

test("a tool is not executed if the message that calls it turns out not to be stored", async () => {
  const stores = createMemoryStores();
  let executed = 0;
  let hasFailed = false;
  const failing = appending(stores, async (lease, events) => {
    await turn();
    if (!hasFailed && events.some(callsTool)) {
      hasFailed = true;
      throw new Error("The disk is full.");
    }
    await turn();
    return stores.events.append(lease, events);
  });
  const { runs, start } = managed(failing, { script, tools: [noting(() => String(++executed))] });
  await runs.open();
  const run = await start(ADA);
  expect(await settledOf(runs, ADA, run)).toMatchObject({ status: "error" });
  expect(hasFailed).toBe(true);
  expect(executed).toBe(0);
});

/** Turns of the event loop that a write takes: more than a run needs for its next event when its work is cut. */
const SLOW_TURNS = 50;

/** The events of a run as they come to a slow store, and when one of its writes is done. */
async function stepsOf(options: Parameters<typeof managed>[1]): Promise<string> {
  const stores = createMemoryStores();
  const steps: string[] = [];
  const slow = appending(stores, async (lease, events) => {
    for (const { event } of events) steps.push(event);
    for (let turns = 0; turns < SLOW_TURNS; turns++) await turn();
    steps.push("written");
    return stores.events.append(lease, events);
  });
  const { runs, start } = managed(slow, options);
  await runs.open();
  await settledOf(runs, ADA, await start(ADA));
  return steps.join();
}

test("a message that calls a tool is stored with the start of the call", async () => {
  expect(await stepsOf({ script, tools: [noting(() => "ok")] })).toContain("on_message,on_tool_start");
});

test("the changes of a write_todos call are stored with its result", async () => {
  const planning = [{ call: [{ tool: "write_todos", args: { todos: [] } }] }, { say: "done" }];
  const steps = await stepsOf({ script: planning, hooks: [made(todos)] });
  expect(steps).toContain("on_state,on_tool_end,on_message");
});

test("a user's message is stored with the first list of todos, and the answer with the end", async () => {
  const steps = await stepsOf({ script: [{ say: "done" }], hooks: [made(todos)] });
  expect(steps).toMatch(/^run_start,on_message,on_state,written/);
  expect(steps).toContain("on_message,done");
});

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

const callsTool = (event: StreamEvent) =>
  event.event === "on_message" && event.data.message.role === "assistant";
