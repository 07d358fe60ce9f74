import { describe, expect, test } from "vitest";
import { NO_USAGE } from "../../src/agent/core/message.ts";
import { type StreamEvent, warning } from "../../src/protocol/event.ts";
import { phaseOf, trackPhase } from "../../src/protocol/phase.ts";

const START: StreamEvent = { event: "run_start", data: { agent: "a", model: "m", attempt: 1 } };
const speaks: StreamEvent = {
  event: "on_chat_model_start",
  name: "m",
  data: { message_id: "1", model: "m" },
};
const delta: StreamEvent = { event: "on_chat_model_stream", data: { delta: "x" } };
const spoke: StreamEvent = { event: "on_chat_model_end", name: "m", data: { message_id: "1" } };
const begins = (name: string, call_id = name): StreamEvent => ({
  ...{ event: "on_tool_start", name, data: { call_id, args: {} } },
});
const goesOn = (name: string): StreamEvent => ({
  ...{ event: "on_tool_progress", name, data: { call_id: name, output: "…" } },
});
const ends = (name: string, call_id = name): StreamEvent => ({
  ...{ event: "on_tool_end", name, data: { call_id, output: "", duration_ms: 1 } },
});
const asks = (kind: "approval" | "question" | "tool", name: string): StreamEvent => ({
  event: "on_interrupt",
  data: {
    ...{ id: `${kind}_${name}`, kind, call_id: name, run_id: "r", name, args: {}, prompt: "?" },
    created_at: "2026-11-21T10:00:00.000Z",
  },
});
const child = (id: string, call_id: string): StreamEvent => ({
  event: "on_subagent_start",
  data: { id, call_id, agent: "coder", name: `coder-${id}`, thread_id: "t2", run_id: "r2" },
});
const childEnds = (id: string, call_id: string): StreamEvent => ({
  event: "on_subagent_end",
  data: { id, call_id, status: "completed", summary: "" },
});
const done = (status: "success" | "interrupted" | "cancelled"): StreamEvent => ({
  event: "done",
  data: { status, stop_reason: "end_turn", usage: NO_USAGE },
});

describe("the phase of a run", () => {
  test.each<[string, StreamEvent[], object]>([
    ["that has said nothing", [], { name: "idle" }],
    ["that has begun", [START], { name: "processing" }],
    ["whose model speaks", [START, speaks, delta], { name: "calling_model" }],
    ["whose model has spoken", [START, speaks, delta, spoke], { name: "processing" }],
    ["that waits to ask again", [START, speaks, spoke, warning("model_retry", "…")], { name: "processing" }],
    [
      "with calls side by side",
      [START, begins("b"), begins("a"), begins("a", "2"), begins("c"), ends("c")],
      { name: "executing_tool", of: ["a", "b"] },
    ],
    [
      "that asks for leave",
      [START, begins("rm"), asks("approval", "rm"), ends("rm"), done("interrupted")],
      { name: "waiting_for_permission", of: ["rm"] },
    ],
    [
      "that asks while another call is at work",
      [START, begins("rm"), begins("ls"), asks("approval", "rm"), ends("rm")],
      { name: "executing_tool", of: ["ls"] },
    ],
    ["that asks its user", [asks("question", "ask_user")], { name: "waiting_for_answer", of: ["ask_user"] }],
    [
      "whose call a front end carries out",
      [asks("tool", "pick"), done("interrupted")],
      { name: "waiting_for_tool", of: ["pick"] },
    ],
    [
      "that was answered",
      [
        START,
        asks("approval", "rm"),
        { event: "on_resume", data: { id: "approval_rm", decision: "approve" } },
      ],
      { name: "processing" },
    ],
    [
      "whose subagents work",
      [START, begins("delegate"), child("x", "delegate"), child("y", "delegate")],
      { name: "waiting_for_subagent", of: ["coder-x", "coder-y"] },
    ],
    [
      "whose subagent speaks and calls",
      [
        ...[START, begins("delegate"), child("x", "delegate"), { ...speaks, path: ["x"] }],
        { ...begins("ls"), path: ["x"] },
      ],
      { name: "waiting_for_subagent", of: ["coder-x"] },
    ],
    [
      "that works beside its subagent",
      [START, begins("delegate"), begins("ls"), child("x", "delegate")],
      { name: "executing_tool", of: ["ls"] },
    ],
    [
      "whose subagents are done",
      [START, begins("delegate"), child("x", "delegate"), childEnds("x", "delegate"), ends("delegate")],
      { name: "processing" },
    ],
    ["that was taken over", [speaks, { event: "run_resumed", data: { attempt: 2 } }], { name: "processing" }],
    ["that has ended", [START, begins("a"), ends("a"), done("success")], { name: "idle" }],
    ["that was stopped after a step", [START, begins("a"), ends("a"), done("interrupted")], { name: "idle" }],
    [
      "that has failed",
      [speaks, { event: "error", data: { code: "internal", message: "" } }],
      { name: "idle" },
    ],
  ])("%s", (_, events, phase) => {
    expect(phaseOf(events)).toEqual(phase);
  });

  test.each<[string, StreamEvent[], object]>([
    ["the model's words", [delta, delta], { name: "calling_model" }],
    ["a tool's output", [goesOn("build")], { name: "executing_tool", of: ["build"] }],
    ["a subagent's words", [{ ...delta, path: ["x", "y"] }], { name: "waiting_for_subagent", of: ["x"] }],
    ["ends of what began before", [ends("a"), childEnds("x", "c"), spoke], { name: "processing" }],
  ])("is read from the end of a long log: %s", (_, events, phase) => {
    expect(phaseOf(events)).toEqual(phase);
  });

  test("is tracked event by event too", () => {
    const track = trackPhase();
    const phases = [START, speaks, spoke, begins("ls"), ends("ls"), done("success")].map(
      (event) => track(event).name,
    );
    expect(phases).toEqual([
      ...["processing", "calling_model", "processing", "executing_tool", "processing", "idle"],
    ]);
  });
});
