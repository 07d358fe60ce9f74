import { expect, test } from "vitest";
import { runTrace } from "../../../src/agent/core/tool.ts";
import { logRecorder } from "../../../src/engine/runs/logging.ts";

test("an event is logged in the line of its span, or in its own line", () => {
  const lines: unknown[] = [];
  const recorder = logRecorder({ debug: (details, message) => void lines.push({ message, ...details }) });
  const trace = runTrace(recorder, { run_id: "run_1", thread_id: "th_1" });
  const span = trace.startSpan("cache", { key: "a" }).recordEvent("hit", { size: 3 });
  trace.recordEvent("cleared", { keys: 2 });
  span.end();
  const ids = { run_id: "run_1", thread_id: "th_1" };
  expect(lines).toEqual([
    { message: "cleared", ...ids, keys: 2 },
    {
      ...{ message: "cache", ...ids, key: "a", duration_ms: expect.any(Number) },
      events: [{ event: "hit", size: 3, after_ms: expect.any(Number) }],
    },
  ]);
});

test("a span is one log line with all its attributes and its duration", () => {
  const lines: unknown[] = [];
  const recorder = logRecorder({ debug: (details, message) => void lines.push({ message, ...details }) });
  const span = recorder.startSpan("tool.call", { run_id: "run_1", tool_name: "ls" });
  span.set("output_length", 3).set("tool_name", "glob");
  expect(lines).toEqual([]);
  span.end();
  const known = { run_id: "run_1", tool_name: "glob", output_length: 3 };
  expect(lines).toEqual([{ message: "tool.call", ...known, duration_ms: expect.any(Number) }]);
});
