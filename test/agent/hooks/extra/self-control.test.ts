// Hooks that keep a run within bounds, those that few agents have among them, all at once.

import { expect, test } from "vitest";
import { toolMessages, unanswered, userMessage } from "../../../../src/agent/core/message.ts";
import type { ModelRequest } from "../../../../src/agent/core/model.ts";
import { hooks } from "../../../../src/agent/hooks/index.ts";
import type { Turn } from "../../../../src/agent/models/scripted.ts";
import { type Played, plainTool, play } from "../../../support/agent.ts";
import { dataOf } from "../../../support/drain.ts";
import { startServer } from "../../../support/server.ts";
import { post } from "../../../support/sse.ts";
import { listening, remindersIn } from "../listening.ts";
import { agentWith, made } from "../made.ts";

for (const hook of hooks) await hook.load?.();

/** The hooks as a server has them, with these options for those that are asked for. */
function all(options: Record<string, Record<string, unknown>>, agent = {}) {
  return hooks
    .filter((hook) => options[hook.name] ?? hook.activeByDefault(agentWith(agent)))
    .map((hook) => made(hook, { options: options[hook.name] ?? {}, agent }));
}

const read = plainTool("read", ({ nth }) => `${nth}: ${"word ".repeat(200)}`);
const isSummary = (request: ModelRequest) => request.system[0]?.id === "summarization";
const reading = (nth: number): Turn => ({
  call: [0, 1].map((side) => ({ tool: "read", args: { nth: 2 * nth + side } })),
  usage: { input_tokens: 1, output_tokens: 49 },
});

/** No request holds a call without its result, or a result without its call. */
function expectWholeCalls({ messages }: ModelRequest) {
  const called = messages.flatMap((each) => (each.role === "assistant" ? (each.tool_calls ?? []) : []));
  expect(toolMessages(messages).map(({ tool_call_id }) => tool_call_id)).toEqual(called.map(({ id }) => id));
}

test("budgets, summaries, trimming, a window and reminders work together", async () => {
  const window = { context_window: 4000 };
  const { model, asked } = listening((request, call) =>
    isSummary(request) ? { say: "SUMMARY", usage: { input_tokens: 1, output_tokens: 49 } } : reading(call),
  );
  const { outcome, messages, events } = await play({
    model,
    tools: [read],
    maxIterations: 0,
    hooks: all(
      {
        budgets: { tokens: 2000, seconds: 600 },
        guardrails: { output: { deny: ["never said"] }, tool_args: { deny: ["never called"] } },
        loop_detection: {},
        trimming: { keep: 4, step: 4 },
        sliding_window: { max_messages: 40 },
        progress_reminder: { every: 3 },
      },
      window,
    ),
  });
  expect(outcome).toMatchObject({ status: "error", stop_reason: "token_budget" });
  expect(unanswered(messages)).toEqual([]);
  expect(toolMessages(messages).every(({ error }) => error === undefined)).toBe(true);
  expect(toolMessages(messages).every(({ content }) => String(content).length > 900)).toBe(true);
  const codes = dataOf(events, "warning").map(({ code }) => code);
  expect(codes).toContain("context_compacted");
  expect(codes).toContain("token_budget");
  const requests = asked.filter((request) => !isSummary(request));
  expect(requests.length).toBeGreaterThan(1);
  for (const request of requests) expectWholeCalls(request);
  expect(requests.flatMap(remindersIn).join()).toContain("of its 2000 tokens. Finish now");
});

test("a long conversation continues through windows and summaries, run after run", async () => {
  const { model, asked } = listening((request) =>
    isSummary(request) ? { say: "SUMMARY" } : { say: `answer ${"word ".repeat(100)}` },
  );
  let last: Played | undefined;
  for (let nth = 0; nth < 30; nth++) {
    last = await play({
      model,
      say: null,
      hooks: all({ sliding_window: { max_messages: 12 }, trimming: {} }, { context_window: 2000 }),
      input: {
        input: [userMessage(`question ${nth}`)],
        ...(last ? { messages: last.messages, state: last.state } : {}),
      },
    });
    expect(last.outcome.status).toBe("success");
  }
  expect(last?.messages).toHaveLength(60);
  const requests = asked.filter((request) => !isSummary(request));
  expect(Math.max(...requests.map(({ messages }) => messages.length))).toBeLessThanOrEqual(13);
  expect(requests).toHaveLength(30);
  for (const [nth, { messages }] of requests.entries())
    expect(messages.at(-1)?.content).toBe(`question ${nth}`);
});

test("a run that is taken over during its calls keeps its limits", async () => {
  const options = {
    ...{ budgets: { tokens: 400 }, loop_detection: {}, trimming: { keep: 1, step: 1 } },
    ...{ sliding_window: { max_messages: 4 }, guardrails: { input: { deny: ["bomb"] } } },
  };
  const id = "run_1";
  const first = await play({
    script: [reading(0), reading(1), { say: "gone" }],
    tools: [read],
    input: { id },
  });
  // The process died when one of two calls had its result.
  const messages = first.messages.slice(0, 6);
  expect(unanswered(messages)).toHaveLength(1);
  const { outcome, messages: after } = await play({
    ...{ say: null, tools: [read], hooks: all(options), script: (_, call) => reading(2 + call) },
    input: {
      ...{ id, attempt: 2, messages, state: first.state },
      ...{ usage: { input_tokens: 100, output_tokens: 100, cache_read_tokens: 0, cache_write_tokens: 0 } },
    },
  });
  expect(outcome).toMatchObject({ status: "error", stop_reason: "token_budget" });
  expect(unanswered(after)).toEqual([]);
  expect(after.filter(({ role }) => role === "assistant")).toHaveLength(2 + 4);
});

test("notes and tasks can be enabled in YAML, and stay with the thread across runs", async () => {
  const call = (tool: string, args = {}) => ({ call: [{ tool, args }] });
  const turns = [
    call("write_note", { name: "plan", text: "Paint the door." }),
    call("create_tasks", { tasks: [{ id: "paint", title: "Paint" }] }),
    { say: "ok" },
    call("read_note", { name: "plan" }),
    call("claim_task", { id: "paint" }),
    { say: "ok" },
  ];
  let nth = 0;
  const { url } = await startServer({
    script: () => turns[nth++],
    agents: `
agents:
  assistant:
    model: scripted:test
    identity: You are Ada.
    hooks: { notes: true, tasks: true, reflections: true, failure_reflection: true, stall_detection: { window: 4 } }
`,
  });
  await (await post(`${url}/threads/t1/runs`, { input: "Plan." })).ended();
  const events = await (await post(`${url}/threads/t1/runs`, { input: "Continue." })).ended();
  const outputs = dataOf(events, "on_tool_end").map(({ output }) => output);
  expect(outputs[0]).toMatch(/^plan \(assistant, .*\):\n\nPaint the door\.$/);
  expect(outputs[1]).toMatch(/^Task `paint` is yours/);
});
