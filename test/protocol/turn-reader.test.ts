// The parts of a turn that wires show.

import { describe, expect, test } from "vitest";
import type { End } from "../../src/protocol/end.ts";
import type { EventData, StreamEvent } from "../../src/protocol/event.ts";
import type { Interrupt } from "../../src/protocol/interrupt.ts";
import { readTurn, type TurnHandlers } from "../../src/protocol/turn-reader.ts";

const NO_USAGE = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 };
const AT = "2026-01-01T00:00:00.000Z";
const start: StreamEvent = { event: "run_start", data: { agent: "assistant", model: "m", attempt: 1 } };
const done = (status: EventData<"done">["status"], stop_reason = "end_turn"): StreamEvent => ({
  event: "done",
  data: { status, stop_reason, usage: NO_USAGE },
});
const question = (id: string): Interrupt => ({
  ...{ id, kind: "question", call_id: `call_${id}`, run_id: "run_1", name: "ask_user", args: {} },
  ...{ prompt: "Which?", created_at: AT },
});
const asked = (id: string): StreamEvent => ({ event: "on_interrupt", data: question(id) });
const answered = (id: string): StreamEvent => ({ event: "on_resume", data: { id, decision: "respond" } });
const said = (id: string): StreamEvent => ({
  event: "on_message",
  data: { message: { id, role: "user", content: "Hi", created_at: AT } },
});
const result = (call_id: string): StreamEvent => ({
  event: "on_message",
  data: {
    message: {
      ...{ id: `result_${call_id}`, role: "tool", created_at: AT },
      ...{ content: "", tool_call_id: call_id, name: "ask_user" },
    },
  },
});
const step = (id: string): StreamEvent => ({
  event: "on_chat_model_start",
  name: "m",
  data: { message_id: id, model: "m" },
});

/** What the handlers return for these events. */
function read<F>(on: Partial<TurnHandlers<F, undefined>>, events: readonly StreamEvent[]): F[] {
  const see = readTurn<F, undefined>(on);
  return events.flatMap((event) => see(event, undefined));
}
const endsOf = (events: readonly StreamEvent[]): End[] => read<End>({ end: (end) => [end] }, events);

describe("the end of a run", () => {
  test.each([
    ["asks, while a question is open", [asked("a"), done("interrupted", "tool_use")], "asks"],
    ["waits for the result of a deferred call", [done("interrupted", "tool_use")], "waits"],
    ["is finished after a soft stop", [done("interrupted", "interrupt")], "finished"],
    ["asks, though it was softly stopped as well", [asked("a"), done("interrupted", "interrupt")], "asks"],
    ["is finished", [done("success")], "finished"],
    ["is cancelled", [asked("a"), done("cancelled", "cancelled")], "cancelled"],
    ["is a limit", [done("error", "max_iterations")], "limit"],
    [
      "is a failure",
      [{ event: "error", data: { code: "internal", message: "It broke." } } as StreamEvent],
      "failed",
    ],
  ])("%s", (_, events, as) => {
    expect(endsOf([start, ...events]).map((end) => end.as)).toEqual([as]);
  });

  test("names the open questions, without those answered, withdrawn or asked by an earlier run", () => {
    const [first, second] = endsOf([
      ...[start, asked("a"), asked("b"), asked("c"), done("interrupted", "tool_use")],
      ...[start, asked("b"), asked("c"), answered("b"), result("call_c")],
      ...[asked("d"), done("interrupted", "tool_use")],
    ]);
    expect(first?.questions.map(({ id }) => id)).toEqual(["a", "b", "c"]);
    expect(second?.questions.map(({ id }) => id)).toEqual(["d"]);
  });

  test("names each question once, in the order in which they were first asked", () => {
    const [end] = endsOf([start, asked("a"), asked("b"), asked("a"), done("interrupted", "tool_use")]);
    expect(end?.questions.map(({ id }) => id)).toEqual(["a", "b"]);
  });

  test("names no question of a call that has its result, however often a subagent asked it", () => {
    const ofSubagent = (id: string): StreamEvent => ({
      event: "on_interrupt",
      data: { ...question(id), call_id: "task" },
    });
    const [end] = endsOf([
      ...[start, ofSubagent("a"), ofSubagent("b"), result("task"), done("interrupted", "tool_use")],
    ]);
    expect(end).toMatchObject({ as: "waits", questions: [] });
  });

  test("of a turn that waits after an answered question is not a question", () => {
    const ends = endsOf([
      ...[start, asked("a"), done("interrupted", "tool_use")],
      ...[start, answered("a"), done("interrupted", "tool_use")],
    ]);
    expect(ends.map(({ as }) => as)).toEqual(["asks", "waits"]);
  });
});

test("an answer is reported with its question, even in a later run", () => {
  const answers = read<string | undefined>({ answered: (_, known) => [known?.prompt] }, [
    ...[start, asked("a"), done("interrupted", "tool_use")],
    ...[start, answered("a"), answered("b")],
  ]);
  expect(answers).toEqual(["Which?", undefined]);
});

test("patches of the files are merged, and the handler receives the changes", () => {
  const changed = (patch: Record<string, unknown>): StreamEvent => ({
    event: "on_state",
    data: { key: "files", patch },
  });
  const seen = read<unknown>({ files: (value, { before }) => [{ before, value }] }, [
    changed({ a: 1, b: 2 }),
    changed({ a: null, c: 3 }),
    { event: "on_state", data: { key: "files", value: { d: 4 } } },
  ]);
  expect(seen).toEqual([
    { before: undefined, value: { a: 1, b: 2 } },
    { before: { a: 1, b: 2 }, value: { b: 2, c: 3 } },
    { before: { b: 2, c: 3 }, value: { d: 4 } },
  ]);
});

test("a user message steers once the agent has started to work", () => {
  const steering = read<boolean>({ user: (_, isSteering) => [isSteering] }, [
    ...[start, said("before"), step("m1"), said("while")],
  ]);
  expect(steering).toEqual([false, true]);
});

test("a system message steers once the agent has started to work", () => {
  const told = (id: string): StreamEvent => ({
    event: "on_message",
    data: { message: { id, role: "system", content: "Hi", created_at: AT } },
  });
  const steering = read<boolean>({ system: (_, isSteering) => [isSteering] }, [
    ...[start, told("before"), step("m1"), told("while")],
  ]);
  expect(steering).toEqual([false, true]);
});

test("events of subagents reach no other handler", () => {
  const path = ["call_1"];
  const delta: StreamEvent = { event: "on_chat_model_stream", path, data: { delta: "x" } };
  const seen = read<string>(
    { delta: () => ["own"], end: () => ["end"], subagent: (_, at) => [`of ${at.join("/")}`] },
    [start, delta, { ...done("success"), path }, { event: "on_chat_model_stream", data: { delta: "y" } }],
  );
  expect(seen).toEqual(["of call_1", "of call_1", "own"]);
});

test("a part without a handler produces nothing and does not affect the others", () => {
  const events = [start, step("m1"), asked("a"), done("interrupted", "tool_use")];
  expect(read({}, events)).toEqual([]);
  expect(endsOf(events)).toHaveLength(1);
});
