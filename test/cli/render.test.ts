import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { renderer } from "../../src/cli/render.ts";
import type { StreamEvent } from "../../src/core/event.ts";

test("an agent's own mark stands before what it is called", () => {
  const data = { id: "c", call_id: "c", agent: "coder", name: "coder-fix-1", thread_id: "t", run_id: "r" };
  const shown = renderer()({ event: "on_subagent_start", data: { ...data, prefix: "🤖" } });
  expect(stripVTControlCharacters(shown)).toBe("🤖 coder-fix-1 coder\n");
});

test("what subagents do is shown, set in; what they say is not", () => {
  const path = ["call_1"];
  const events: StreamEvent[] = [
    {
      event: "on_subagent_start",
      data: {
        id: "call_1",
        call_id: "call_1",
        agent: "coder",
        name: "coder-fix-1",
        thread_id: "t",
        run_id: "r",
      },
    },
    { event: "on_chat_model_stream", path, data: { delta: "Let me see." } },
    { event: "on_tool_start", name: "look", path, data: { call_id: "c", args: {} } },
    {
      event: "on_subagent_end",
      data: { id: "call_1", call_id: "call_1", status: "completed", summary: "Fixed." },
    },
  ];
  expect(stripVTControlCharacters(events.map(renderer()).join(""))).toBe(
    "⇢ coder-fix-1 coder\n  coder-fix-1 → look {}\ncoder-fix-1 ⇠ completed Fixed.\n",
  );
});

test("several active subagents can be told apart", () => {
  const start = (id: string, name: string): StreamEvent => ({
    event: "on_subagent_start",
    data: { id, call_id: "c", agent: "coder", name, thread_id: "t", run_id: "r" },
  });
  const looks = (id: string): StreamEvent => ({
    event: "on_tool_start",
    ...{ name: "look", path: [id], data: { call_id: "c", args: {} } },
  });
  const events = [start("c#1", "coder-fix-1"), start("c#2", "coder-test-2"), looks("c#2"), looks("c#1")];
  expect(stripVTControlCharacters(events.map(renderer()).slice(2).join(""))).toBe(
    "  coder-test-2 → look {}\n  coder-fix-1 → look {}\n",
  );
});

test("an escape sequence that is split between two deltas is not passed on", () => {
  const deltas = ["\u001b", "[8mhidden", "\u{e0041}".charAt(0), "\u{e0041}".charAt(1), "👩‍", "💻"];
  const shown = deltas
    .map((delta) => renderer()({ event: "on_chat_model_stream", data: { delta } }))
    .join("");
  expect(shown).toBe("\\u{1b}[8mhidden\\u{db40}\\u{dc41}👩‍💻");
});
