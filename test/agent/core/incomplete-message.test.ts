// What is kept of an answer that was cut off, and what the model reads of it.

import { expect, test } from "vitest";
import { trackPartial, withIncompleteNotes } from "../../../src/agent/core/incomplete-message.ts";
import {
  type AssistantMessage,
  assistantMessage,
  type Message,
  userMessage,
} from "../../../src/agent/core/message.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";

const start = (message_id: string): StreamEvent => ({
  event: "on_chat_model_start",
  name: "m",
  data: { message_id, model: "p:m" },
});
const said = (delta: string): StreamEvent => ({ event: "on_chat_model_stream", data: { delta } });
const thought = (reasoning_delta: string): StreamEvent => ({
  event: "on_chat_model_stream",
  data: { reasoning_delta },
});
const called = (args_delta: string): StreamEvent => ({
  event: "on_chat_model_stream",
  data: { tool_call: { index: 0, id: "c", name: "t", args_delta } },
});

const error = { code: "cancelled", message: "Cancelled." } as const;

function heard(...events: StreamEvent[]) {
  const words = trackPartial();
  for (const event of events) words.see(event);
  return words.message("stopped");
}

test("keeps the newest message's text, without its thinking and unfinished call", () => {
  const message = heard(
    start("a"),
    said("old"),
    start("b"),
    thought("Hm."),
    said("Let "),
    said("me"),
    called("{"),
  );
  expect(message).toEqual({
    ...{ id: "b", role: "assistant", content: "Let me", model: "p:m", incomplete: "stopped" },
    created_at: expect.any(String),
  });
});

test.each<[string, StreamEvent[]]>([
  ["nothing was said", [start("a"), thought("Hm."), said("\n")]],
  ["it was discarded", [start("a"), said("x"), { event: "message_discard", data: { message_id: "a" } }]],
  [
    "it is in the thread",
    [
      start("a"),
      said("x"),
      { event: "on_message", data: { message: { ...assistantMessage("x"), id: "a" } } },
    ],
  ],
  ["a subagent said it", [{ ...start("a"), path: ["c"] }, { ...said("x"), path: ["c"] } as StreamEvent]],
])("no message is kept when %s", (_, events) => {
  expect(heard(...events)).toBeUndefined();
});

test("a message of a call whose process died counts as searched if the provider could search", () => {
  const searching = {
    ...start("a"),
    data: { message_id: "a", model: "p:m", web_search: true },
  } as StreamEvent;
  expect(heard(searching, said("x"))).toMatchObject({ content: "x", sources: [] });
  const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 };
  const ended = { event: "on_chat_model_end", name: "m", data: { message_id: "a", usage, error } } as const;
  expect(heard(searching, said("x"), ended)).not.toHaveProperty("sources");
  const estimated = { ...ended, data: { ...ended.data, usage: { ...usage, estimated: true as const } } };
  expect(heard(searching, said("x"), estimated)).toMatchObject({ sources: [] });
  expect(heard(start("a"), said("x"), estimated)).not.toHaveProperty("sources");
  const searched = { ...ended, data: { ...ended.data, usage: { ...usage, web_searches: 1 } } };
  expect(heard(searching, said("x"), searched)).toMatchObject({ sources: [] });
});

const cut: AssistantMessage = {
  ...assistantMessage("Once upon a"),
  incomplete: "stopped",
  reasoning: [{ text: "A tale, then." }],
};

const roles = (messages: readonly Message[]) => messages.map(({ role }) => role);

test("the model sees the incomplete answer, and one note about it with the user's next message", () => {
  const next = userMessage("Shorter, please.");
  const told = withIncompleteNotes([
    userMessage("A tale"),
    cut,
    next,
    assistantMessage("No."),
    userMessage("Why?"),
  ]);
  expect(roles(told)).toEqual(["user", "assistant", "user", "assistant", "user"]);
  expect(told[1]).not.toHaveProperty("reasoning");
  expect(told[2]).toMatchObject({
    id: next.id,
    content: expect.stringMatching(/stopped.*\n*.*Shorter, please/s),
  });
  expect(JSON.stringify(told).match(/stopped your answer/g)).toHaveLength(1);
  const parts = withIncompleteNotes([cut, userMessage([{ type: "text", text: "Shorter" }])]);
  expect(parts[1]?.content).toEqual([
    { type: "text", text: expect.stringContaining("stopped") },
    { type: "text", text: "Shorter" },
  ]);
});

test("to continue, the model is asked to continue where the answer ends, in later calls too", () => {
  const begun = withIncompleteNotes([userMessage("A tale"), cut]);
  expect(roles(begun)).toEqual(["user", "assistant", "user"]);
  expect(begun.at(-1)?.content).toContain("Continue exactly where it ends");
  const later = withIncompleteNotes([
    userMessage("A tale"),
    cut,
    assistantMessage(" time."),
    userMessage("Thanks."),
  ]);
  expect(later.slice(0, 3)).toEqual(
    withIncompleteNotes([userMessage("A tale"), cut]).map((each, at) => (at === 0 ? later[0] : each)),
  );
});

test("messages do not change if there is no incomplete answer", () => {
  const messages = [userMessage("hi"), assistantMessage("Hello.")];
  expect(withIncompleteNotes(messages)).toBe(messages);
});
