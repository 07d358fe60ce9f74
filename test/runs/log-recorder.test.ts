import { expect, test } from "vitest";
import { logRecorder } from "../../src/runs/log-recorder.ts";

test("a span is one line of the log, with all that it knows and how long it took", () => {
  const lines: unknown[] = [];
  const recorder = logRecorder({ debug: (details, message) => void lines.push({ message, ...details }) });
  const span = recorder.startSpan("tool.call", { run_id: "run_1", tool_name: "ls" });
  span.set("output_length", 3).set("tool_name", "glob");
  expect(lines).toEqual([]);
  span.end();
  const known = { run_id: "run_1", tool_name: "glob", output_length: 3 };
  expect(lines).toEqual([{ message: "tool.call", ...known, duration_ms: expect.any(Number) }]);
});
