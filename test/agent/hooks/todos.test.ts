import { expect, test } from "vitest";
import { conversation, toolMessages } from "../../../src/agent/core/message.ts";
import { todos } from "../../../src/agent/hooks/todos.ts";
import { play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { made } from "./made.ts";

const item = (id: string, status = "pending", title = `task ${id}`) => ({ id, title, status });
const writing = (...lists: unknown[]) => ({
  script: [{ call: lists.map((list) => ({ tool: "write_todos", args: { todos: list } })) }, { say: "ok" }],
  hooks: [made(todos)],
});

test("a thread begins with an empty list, and keeps an existing one", async () => {
  const { events } = await play({ hooks: [made(todos)] });
  expect(dataOf(events, "on_state")).toEqual([{ key: "todos", value: [] }]);
  const input = { state: new Map([["todos", [item("1")]]]) };
  expect(dataOf((await play({ hooks: [made(todos)], input })).events, "on_state")).toEqual([]);
});

test("write_todos replaces the whole list", async () => {
  const { state, messages } = await play({
    script: [
      { call: [{ tool: "write_todos", args: { todos: [item("1"), item("2")] } }] },
      { call: [{ tool: "write_todos", args: { todos: [item("2", "done"), item("3", "in_progress")] } }] },
      { say: "ok" },
    ],
    hooks: [made(todos)],
  });
  expect(state.get("todos")).toEqual([item("2", "done"), item("3", "in_progress")]);
  expect(toolMessages(messages).at(-1)?.content).toBe(
    "The list has 2 todos now: 0 pending, 1 in_progress, 1 done.",
  );
});

test.each([
  ["two todos with one id", [item("1"), item("1")], /unique id/],
  ["a blank title", [item("1", "pending", "  ")], /title: must not be empty/],
  ["a title of more than 500 characters", [item("1", "pending", "x".repeat(501))], /500/],
  ["a status of its own making", [item("1", "blocked")], /status/],
  ["more than 100 todos", Array.from({ length: 101 }, (_, n) => item(`${n}`)), /100/],
  ["what is no list", "1. do it", /todos/],
])("refuses %s and does not change the list", async (_, list, fault) => {
  const { state, messages } = await play(writing(list));
  expect(toolMessages(messages)[0]?.error).toMatch(fault);
  expect(state.get("todos")).toEqual([]);
});

test("a plan needs no permission and can be written again after a crash", async () => {
  const call = { id: "call_1", name: "write_todos", args: { todos: [item("1")] } };
  const { state, messages } = await play({
    hooks: [made(todos)],
    say: null,
    input: {
      messages: conversation().user("go").assistant("", call).messages,
      begun: new Set(["call_1"]),
    },
  });
  expect(toolMessages(messages)[0]?.error).toBeUndefined();
  expect(state.get("todos")).toEqual([item("1")]);
});
