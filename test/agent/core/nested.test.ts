import { expect, test } from "vitest";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { plainTool, play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";

const child: StreamEvent = {
  event: "on_subagent_start",
  data: { id: "call_1_1", call_id: "call_1_1", agent: "b", name: "b-task-1", thread_id: "t", run_id: "r" },
};
const path = ["call_1_1"];
const said: StreamEvent[] = [
  child,
  { event: "on_tool_start", name: "look", path, data: { call_id: "call_1_1", args: {} } },
  {
    event: "on_chat_model_start",
    name: "m",
    path: [...path, "deeper"],
    data: { message_id: "m1", model: "m" },
  },
];
// Deeper down there is another one.
said.splice(2, 0, { ...child, path, data: { ...child.data, id: "deeper" } });

/** Says what subagents say, and then never ends by itself, or fails. */
const talking = (end: () => Promise<string>) =>
  plainTool("talk", async function* () {
    for (const event of said) yield event;
    return await end();
  });

test.each([
  ["fails", () => Promise.reject(new Error("broken"))],
  ["says no end of it", async () => "done"],
])("ends everything that subagents started before a call that %s", async (_, end) => {
  const { events } = await play({
    script: [{ call: [{ tool: "talk" }] }, { say: "ok" }],
    tools: [talking(end)],
  });
  expect(dataOf(events, "on_subagent_end").map(({ id, status }) => [id, status])).toEqual([
    ["deeper", "failed"],
    ["call_1_1", "failed"],
  ]);
});

test("ends everything that subagents started before a call that is abandoned", async () => {
  const abort = new AbortController();
  const { events, outcome } = await play({
    script: [{ call: [{ tool: "talk" }] }],
    tools: [talking(() => new Promise(() => {}))],
    input: { signal: abort.signal },
    onEvent: ({ event, path }) => event === "on_chat_model_start" && path && abort.abort(),
  });
  expect(outcome.status).toBe("cancelled");
  expect(dataOf(events, "on_subagent_end")).toHaveLength(2);
});
