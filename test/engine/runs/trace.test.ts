import { expect, test } from "vitest";
import { NO_USAGE } from "../../../src/agent/core/message.ts";
import { traceOf } from "../../../src/engine/runs/trace.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { ADA, claimed } from "../stores/fixture.ts";

async function traceAfter(events: StreamEvent[]) {
  const stores = createMemoryStores();
  const { lease, run } = await claimed(stores, "t");
  const ts = (index: number) => new Date(Date.UTC(2026, 10, 21) + 1000 * index).toISOString();
  for (const [index, event] of events.entries())
    await stores.events.append(lease, [{ ...event, ts: ts(index) } as StreamEvent]);
  const run_key = { owner: ADA, thread_id: "t", run_id: run.id };
  const trace = await traceOf(stores.events, run_key, { costOf: () => undefined });
  await stores.close();
  return trace;
}

const START: StreamEvent = { event: "run_start", data: { agent: "boss", model: "m", attempt: 1 } };
const DONE: StreamEvent = {
  event: "done",
  data: { status: "success", stop_reason: "end_turn", usage: NO_USAGE },
};
const speaks = (path: string[]): StreamEvent => ({
  ...{ event: "on_chat_model_start", name: "m", data: { message_id: "1", model: "m" }, path },
});
const spoke = (path: string[]): StreamEvent => ({
  ...{ event: "on_chat_model_end", name: "m", data: { message_id: "1" }, path },
});
const begins = (call_id: string, path?: string[]): StreamEvent => ({
  ...{ event: "on_tool_start", name: "work", data: { call_id, args: {} } },
  ...(path ? { path } : {}),
});
const ends = (call_id: string, path?: string[]): StreamEvent => ({
  ...{ event: "on_tool_end", name: "work", data: { call_id, output: "", duration_ms: 5 } },
  ...(path ? { path } : {}),
});

test("a subagent's spans are inside its own, which is inside its call", async () => {
  const child = { id: "x", call_id: "c1", agent: "coder", name: "coder-1", thread_id: "t2", run_id: "r2" };
  const { spans } = await traceAfter([
    ...[START, begins("c1"), { event: "on_subagent_start", data: child } as const],
    ...[speaks(["x"]), spoke(["x"])],
    ...[begins("c1", ["x"]), ends("c1", ["x"])],
    { event: "on_subagent_end", data: { id: "x", call_id: "c1", status: "completed", summary: "Did it." } },
    ...[ends("c1"), DONE],
  ]);
  const byId = new Map(spans.map((span) => [span.id, span]));
  const wayUp = spans.map((span) => {
    const way: string[] = [];
    for (let at: typeof span | undefined = span; at; at = byId.get(at.parent_id ?? "")) way.push(at.name);
    return way.join(" < ");
  });
  expect(wayUp).toEqual([
    "run",
    "tool.call < run",
    "subagent < tool.call < run",
    "llm.call < subagent < tool.call < run",
    "tool.call < subagent < tool.call < run",
  ]);
  expect(spans[2]).toMatchObject({
    agent: "coder",
    status: "completed",
    output: "Did it.",
    duration_ms: 5000,
  });
  expect(spans[0]?.duration_ms).toBe(9000);
});

test("a call that is repeated after a crash has a span for each attempt", async () => {
  const again: StreamEvent = {
    ...{ event: "on_tool_end", name: "work" },
    data: { call_id: "c", interrupted: true, duration_ms: 0 },
  };
  const { spans } = await traceAfter([
    ...[START, speaks([]), spoke([]), begins("c")],
    ...[{ event: "run_resumed", data: { attempt: 2 } } as const, again, begins("c"), ends("c"), DONE],
  ]);
  expect(spans.filter(({ name }) => name === "tool.call")).toMatchObject([
    { call_id: "c", status: "interrupted" },
    { call_id: "c", duration_ms: 5 },
  ]);
});

test("at most 2,000 spans are returned, and marked as incomplete", async () => {
  const calls = Array.from({ length: 2_100 }, (_, index) => [begins(`c${index}`), ends(`c${index}`)]).flat();
  const { spans, is_whole } = await traceAfter([START, ...calls, DONE]);
  expect([spans.length, is_whole]).toEqual([2_000, false]);
  expect(spans[0]).toMatchObject({ name: "run", status: "success" });
});
