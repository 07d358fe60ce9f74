// How a run ended, in one word.

import { expect, test } from "vitest";
import { type Ending, outcomeOf } from "../../src/client/outcome.ts";

const spent = (output_tokens: number) => ({
  input_tokens: 5,
  output_tokens,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
});

test.each<[string, Ending, boolean]>([
  ["queued", { status: "pending" }, false],
  ["running", { status: "running" }, false],
  ["waits", { status: "interrupted", stop_reason: "tool_use" }, true],
  ["answered", { status: "interrupted", stop_reason: "tool_use" }, false],
  ["stopped", { status: "interrupted", stop_reason: "interrupt" }, false],
  ["stopped", { status: "cancelled", stop_reason: "cancelled" }, false],
  ["failed", { status: "error", stop_reason: "max_iterations" }, false],
  ["empty", { status: "success", stop_reason: "end_turn", usage: spent(0) }, false],
  ["cut", { status: "success", stop_reason: "max_tokens", usage: spent(3) }, false],
  ["empty", { status: "success", stop_reason: "max_tokens", usage: spent(3), isEmpty: true }, false],
  ["done", { status: "success", stop_reason: "end_turn", usage: spent(3) }, false],
  ["done", { status: "success", stop_reason: "refusal", usage: spent(0) }, false],
  ["done", { status: "success", stop_reason: "end_turn", usage: spent(0), isEmpty: false }, false],
])("a run is %s by its status, its stop reason and its open questions: %o", (said, run, isAsking) => {
  expect(outcomeOf(run, isAsking)).toBe(said);
});
