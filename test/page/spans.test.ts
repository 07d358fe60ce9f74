import { describe, expect, test } from "vitest";
import type { Span } from "../../src/client/client.ts";
import { runAmong } from "../../src/page/run-among.ts";
import { cellOf, extentOf, rowsOf, spanOf, sumsOf, ticksOf } from "../../src/page/spans.ts";

const AT = Date.parse("2026-01-01T00:00:00.000Z");
const span = (id: string, from: number, ms: number | undefined, more: Partial<Span> = {}): Span => ({
  id,
  name: "tool.call",
  started_at: new Date(AT + from).toISOString(),
  ...(ms === undefined ? {} : { duration_ms: ms }),
  ...more,
});

const SPANS = [
  span("1", 0, 1000, { name: "run", agent: "lead" }),
  span("2", 10, 200, { name: "llm.call", model: "m", parent_id: "1", cost: 5 }),
  span("3", 220, 300, { tool: "execute", parent_id: "1" }),
  span("4", 225, 500, { tool: "delegate", parent_id: "1" }),
  span("5", 230, 400, { name: "subagent", agent: "coder", parent_id: "4" }),
  span("6", 240, 100, { tool: "read_file", parent_id: "5", error: { message: "does not exist" } }),
];
const ALL = { closed: new Set<string>(), text: "", failedOnly: false };
const shown = (choice: Partial<typeof ALL> = {}, spans = SPANS) =>
  rowsOf(spans, { ...ALL, ...choice }, extentOf(spans)).map(({ span: { id }, depth }) => [id, depth]);

describe("a trace as rows", () => {
  test("nests each span under its parent", () => {
    expect(shown()).toEqual([
      ["1", 0],
      ["2", 1],
      ["3", 1],
      ["4", 1],
      ["5", 2],
      ["6", 3],
    ]);
  });

  test("places parallel spans on one time axis", () => {
    const places = rowsOf(SPANS, ALL, extentOf(SPANS)).map(({ start, duration }) => [start, duration]);
    expect(places.slice(2, 4)).toEqual([
      [220, 300],
      [225, 500],
    ]);
  });

  test("shows matches of a search with their surroundings", () => {
    expect(shown({ text: "NOT exist" }).map(([id]) => id)).toEqual(["1", "4", "5", "6"]);
    expect(shown({ failedOnly: true }).map(([id]) => id)).toEqual(["1", "4", "5", "6"]);
    const ended = ["ok", "error", "failed"].map((status) => span(status, 0, 1, { status }));
    expect(shown({ failedOnly: true }, ended).map(([id]) => id)).toEqual(["error", "failed"]);
    expect(shown({ text: "nowhere" })).toEqual([]);
  });

  test("hides the contents of a closed span", () => {
    expect(shown({ closed: new Set(["4"]) }).map(([id]) => id)).toEqual(["1", "2", "3", "4"]);
  });

  test("draws a span in progress up to now", () => {
    const spans = [span("1", 0, undefined, { name: "run" }), span("2", 100, undefined, { parent_id: "1" })];
    const extent = extentOf(spans, AT + 900);
    expect(rowsOf(spans, ALL, extent).map(({ duration }) => duration)).toEqual([900, 800]);
  });

  test("shows a span whose parent is missing", () => {
    expect(shown({}, [span("7", 0, 1, { parent_id: "6" })])).toEqual([["7", 0]]);
  });

  test("adds up the model calls, with their cost if one is known", () => {
    const usage = { input_tokens: 100, output_tokens: 7, cache_read_tokens: 60, cache_write_tokens: 9 };
    const calls = ["7", "8"].map((id) => span(id, 0, 1, { name: "llm.call", usage }));
    expect(sumsOf([...SPANS, ...calls])).toEqual({
      ...{ calls: 3, tools: 3, cost: 5 },
      ...{ input: 200, cached: 120, output: 14 },
    });
    expect(sumsOf(SPANS.slice(2))).not.toHaveProperty("cost");
  });

  test("has at most five round ticks", () => {
    expect(ticksOf(3200)).toEqual([1000, 2000, 3000]);
    expect(ticksOf(0)).toEqual([]);
    for (const ms of [1, 7, 99, 1234, 60_000, 7_200_000]) expect(ticksOf(ms).length).toBeLessThanOrEqual(5);
  });
});

describe("links between a conversation and a trace", () => {
  test("exist for a message and a call, and not for a subagent's in the run's own conversation", () => {
    const spans = [
      span("1", 0, 900, { name: "run" }),
      span("2", 1, 10, { name: "llm.call", message_id: "msg_1", parent_id: "1" }),
      span("3", 20, 500, { call_id: "call_1", parent_id: "1" }),
      span("4", 30, 400, { name: "subagent", call_id: "call_1", parent_id: "3" }),
      span("5", 40, 100, { call_id: "call_2", parent_id: "4" }),
    ];
    expect(spanOf(spans, "msg_1")?.id).toBe("2");
    expect(spanOf(spans, "call_1")?.id).toBe("3");
    expect(spanOf(spans, "call_9")).toBeUndefined();
    expect(spans.map((each) => cellOf(spans, each))).toEqual([
      undefined,
      "msg_1",
      "call_1",
      "call_1",
      undefined,
    ]);
  });

  test("lead from a message to the run that was active then, not to one that was waiting", () => {
    const at = (ms: number) => new Date(AT + ms).toISOString();
    const runs = [
      { id: "waits", created_at: at(2_000) },
      { id: "second", created_at: at(1_000), ended_at: at(9_000) },
      { id: "first", created_at: at(0), ended_at: at(5_000) },
    ];
    const found = (ms: number) => runAmong(runs, AT + ms)?.id;
    expect([3_000, 7_000, 60_000].map(found)).toEqual(["first", "second", "waits"]);
    // The clocks of two machines differ a little.
    expect(runAmong(runs.slice(1), AT + 9_500)?.id).toBe("second");
    expect(runAmong(runs.slice(1), AT + 60_000)).toBeUndefined();
    expect(runAmong(runs, AT - 60_000)).toBeUndefined();
  });
});
