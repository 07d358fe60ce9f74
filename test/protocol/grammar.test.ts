import { describe, expect, test } from "vitest";
import { NO_USAGE } from "../../src/agent/core/message.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import { stillOpen } from "../../src/protocol/open-spans.ts";

const start: StreamEvent = { event: "run_start", data: { agent: "a", model: "m", attempt: 1 } };
const done: StreamEvent = {
  event: "done",
  data: { status: "success", stop_reason: "end_turn", usage: NO_USAGE },
};
const speak = (message_id: string, path?: string[]): StreamEvent => ({
  event: "on_chat_model_start",
  name: "m",
  data: { message_id, model: "m" },
  ...(path ? { path } : {}),
});
const delta = (path?: string[]): StreamEvent => ({
  event: "on_chat_model_stream",
  data: { delta: "x" },
  ...(path ? { path } : {}),
});
const spoken = (message_id: string, path?: string[]): StreamEvent => ({
  event: "on_chat_model_end",
  name: "m",
  data: { message_id },
  ...(path ? { path } : {}),
});
const child = (id: string): StreamEvent => ({
  event: "on_subagent_start",
  data: { id, call_id: "call", agent: "b", name: "b-task-1", thread_id: "t", run_id: "r" },
});
const childEnd = (id: string): StreamEvent => ({
  event: "on_subagent_end",
  data: { id, call_id: "call", status: "completed", summary: "" },
});
const nested = (id: string, event: StreamEvent): StreamEvent => ({ ...event, path: [id] });
const call = (call_id: string): StreamEvent => ({
  event: "on_tool_start",
  name: "t",
  data: { call_id, args: {} },
});
const called = (call_id: string): StreamEvent => ({
  event: "on_tool_end",
  name: "t",
  data: { call_id, duration_ms: 1 },
});

describe("the grammar of a run", () => {
  test.each<[string, StreamEvent[]]>([
    ["the shortest run", [start, done]],
    ["a message", [start, speak("1"), delta(), spoken("1"), done]],
    ["calls side by side", [start, call("a"), call("b"), called("b"), called("a"), done]],
    [
      "a subagent speaking meanwhile",
      [
        ...[start, call("c"), child("c"), speak("1"), speak("2", ["c"]), delta(["c"]), delta()],
        ...[spoken("2", ["c"]), spoken("1"), childEnd("c"), called("c"), done],
      ],
    ],
    [
      "the same call of several subagents",
      [
        ...[start, child("a"), child("b"), nested("a", call("1")), nested("b", call("1"))],
        ...[nested("a", called("1")), childEnd("a"), nested("b", called("1")), childEnd("b"), done],
      ],
    ],
    [
      "a subagent that is followed again",
      [
        start,
        child("a"),
        childEnd("a"),
        child("a"),
        nested("a", child("b")),
        nested("a", childEnd("b")),
        childEnd("a"),
        done,
      ],
    ],
    [
      "a message that starts again",
      [
        start,
        speak("1"),
        { event: "message_discard", data: { message_id: "1" } },
        speak("2"),
        spoken("2"),
        done,
      ],
    ],
  ])("accepts %s", (_, events) => {
    expect(checkGrammar(events)).toEqual([]);
  });

  test.each<[string, StreamEvent[], RegExp]>([
    ["nothing at all", [], /missing/],
    ["no beginning", [done], /first event is done/],
    ["no end", [start], /no terminal event/],
    ["two ends", [start, done, done], /done is not the last/],
    ["something after the end", [start, done, call("a"), called("a")], /not the last/],
    ["two beginnings", [start, start, done], /more than once/],
    ["a message that never ends", [start, speak("1"), done], /message 1 was never ended/],
    ["two messages at once at one place", [start, speak("1"), speak("2"), spoken("2"), done], /open already/],
    ["words outside a message", [start, delta(), done], /no message is open/],
    ["a call that never ends", [start, call("a"), done], /tool call a was never ended/],
    ["a call that ends twice", [start, call("a"), called("a"), called("a"), done], /not open/],
    ["a subagent that never ends", [start, child("a"), done], /subagent a was never ended/],
    ["two subagents at one place", [start, child("a"), child("a"), done], /a is open already/],
    ["an end of no subagent", [start, childEnd("a"), done], /a is not open/],
    ["words of a subagent before it begins", [start, nested("a", call("1")), done], /no subagent is open/],
    [
      "a subagent that ends before what it began",
      [start, child("a"), nested("a", call("1")), childEnd("a"), done],
      /something is open below/,
    ],
    ["a run within a run", [start, child("a"), nested("a", start), childEnd("a"), done], /more than once/],
    ["an end of another message", [start, speak("1"), spoken("2"), spoken("1"), done], /2 is not open/],
  ])("refuses %s", (_, events, fault) => {
    expect(checkGrammar(events).join("\n")).toMatch(fault);
  });

  test("reports what is open during a run, in order", () => {
    const open = stillOpen([
      start,
      call("a"),
      call("b"),
      called("a"),
      speak("1"),
      spoken("1"),
      speak("2", ["b"]),
    ]);
    expect(open.map(({ start }) => start)).toEqual([call("b"), speak("2", ["b"])]);
  });
});
