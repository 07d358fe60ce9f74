// Rows of the wires' tables that few turns reach.

import { expect, test } from "vitest";
import type { ToolCall } from "../../src/agent/core/message.ts";
import type { EventData, StreamEvent } from "../../src/protocol/event.ts";
import { project as uiChunks } from "../../src/wires/ai-sdk/table.ts";
import { project as mcpMessages } from "../../src/wires/mcp/table.ts";
import { project as chatChunks } from "../../src/wires/openai/chat/table.ts";
import { project as responseEvents } from "../../src/wires/openai/responses/table.ts";
import { RUN } from "../support/arbitrary-run.ts";
import { AT, resultOf, written } from "../support/turns/events.ts";

const NO_USAGE = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 };
const START: StreamEvent = { event: "run_start", data: { agent: "assistant", model: "m", attempt: 1 } };
const CALL: ToolCall = { id: "call_1", name: "execute", args: { command: "ls" } };
const step = (message_id: string): StreamEvent => ({
  ...{ event: "on_chat_model_start", name: "m", data: { message_id, model: "m" } },
});
const stepEnd = (message_id: string, error?: EventData<"on_chat_model_end">["error"]): StreamEvent => ({
  ...{ event: "on_chat_model_end", name: "m", data: { message_id, ...(error ? { error } : {}) } },
});
const writes = ({ id, name }: ToolCall): StreamEvent => ({
  event: "on_chat_model_stream",
  data: { tool_call: { index: 0, id, name, args_delta: "{}" } },
});
const says = (delta: string): StreamEvent => ({ event: "on_chat_model_stream", data: { delta } });
const answer = (id: string, content: string, tool_calls: ToolCall[] = []): StreamEvent =>
  written({
    id,
    role: "assistant",
    content,
    created_at: AT,
    ...(tool_calls.length > 0 ? { tool_calls } : {}),
  });
const done = (status: EventData<"done">["status"], stop_reason: string): StreamEvent => ({
  event: "done",
  data: { status, stop_reason, usage: NO_USAGE },
});

const BUSY = { code: "model_overloaded", message: "Busy." };

function chunksOf(events: readonly StreamEvent[]): { type: string }[] {
  const fold = uiChunks({ messageId: "a_1", version: 7 });
  const data = events.flatMap((event) => fold(event, RUN)).map((frame) => String(frame.data));
  return data.filter((each) => each !== "[DONE]").map((each) => JSON.parse(each) as { type: string });
}

test("over the AI SDK, a call that an attempt writes again starts over", () => {
  const chunks = chunksOf([
    ...[START, step("m1"), writes(CALL), stepEnd("m1", BUSY)],
    ...[step("m2"), writes(CALL), stepEnd("m2")],
  ]);
  expect(chunks.filter(({ type }) => type === "tool-input-start")).toHaveLength(2);
});

test("over the AI SDK, a call that a stop prevented from starting is shown completely", () => {
  const chunks = chunksOf([
    ...[START, step("m1"), writes(CALL), stepEnd("m1"), answer("m1", "", [CALL])],
    done("cancelled", "cancelled"),
  ]);
  expect(chunks).toContainEqual(
    expect.objectContaining({ type: "tool-input-available", toolCallId: "call_1" }),
  );
});

test("over MCP, the text is the last non-empty one, even if the last answer is empty", () => {
  const shows = { forms: false, addresses: false };
  const options = { id: 1, progressToken: undefined, asking: "never", shows, namesType: false } as const;
  const { fold } = mcpMessages({ ...options, cursorOf: undefined });
  const frames = [
    ...[
      START,
      step("m1"),
      says("Look:"),
      stepEnd("m1"),
      answer("m1", "Look:", [CALL]),
      resultOf(CALL, "a.txt"),
    ],
    ...[step("m2"), stepEnd("m2"), answer("m2", ""), done("success", "end_turn")],
  ].flatMap((event) => fold(event, RUN));
  expect(JSON.parse(String(frames.at(-1)?.data))).toMatchObject({
    result: { structuredContent: { text: "Look:" } },
  });
});

test("over chat completions, a subagent's call of the client's tool is asked with text", () => {
  const fold = chatChunks({ model: "assistant", includesUsage: false, outputOnly: false });
  const asked: EventData<"on_interrupt"> = {
    ...{
      id: "q",
      kind: "tool",
      call_id: "task_1",
      run_id: "run_1",
      name: "where",
      args: {},
      prompt: "Where is it?",
    },
    ...{ created_at: AT, asked_by: { thread_id: "t2", id: "task_1", name: "helper-1", agent: "helper" } },
  };
  const events: StreamEvent[] = [
    START,
    { event: "on_interrupt", data: asked },
    done("interrupted", "tool_use"),
  ];
  const text = events
    .flatMap((event) => fold(event, RUN))
    .map(({ data }) => String(data))
    .join("");
  expect(text).toContain("Where is it?");
  expect(text).not.toContain("tool_calls");
});

test("a response shows no call from the history that its request contained", () => {
  const { see, response } = responseEvents({});
  const given = [answer("m0", "", [CALL]), resultOf(CALL, "a.txt")];
  for (const event of [START, ...given, step("m1"), says("Hi"), stepEnd("m1"), done("success", "end_turn")])
    see(event, RUN);
  expect(response(RUN).output).toMatchObject([{ type: "message" }]);
});
