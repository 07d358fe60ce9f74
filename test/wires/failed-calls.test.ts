// A person reads why a call failed, and why one was denied, in every front end that shows calls.

import { expect, test } from "vitest";
import { conversation, type Message, NO_USAGE } from "../../src/agent/core/message.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import type { Frame, LongFrame } from "../../src/server/http/sse.ts";
import { historyOf as acpHistory, project as acpUpdates } from "../../src/wires/acp/table.ts";
import { messagesOf } from "../../src/wires/ag-ui/history.ts";
import { project as aguiEvents } from "../../src/wires/ag-ui/table.ts";
import { historyOf as uiHistory } from "../../src/wires/ai-sdk/history.ts";
import { project as uiChunks } from "../../src/wires/ai-sdk/table.ts";
import { messageShape } from "../../src/wires/langgraph/history.ts";
import { project as protocolEvents } from "../../src/wires/langgraph/protocol/table.ts";
import { project as langgraphFrames } from "../../src/wires/langgraph/table.ts";
import { historyOf as items } from "../../src/wires/openai/responses/history.ts";
import { project as respond } from "../../src/wires/openai/responses/table.ts";
import { RUN } from "../support/arbitrary-run.ts";

const FAILED = "The disk is full.";
const DENIED = "Rather not today.";

const { messages } = conversation()
  .user("go")
  .assistant("", ...["failed", "denied"].map((id) => ({ id, name: "execute", args: { command: id } })))
  .tool("failed", "execute", "", FAILED)
  .tool("denied", "execute", "", DENIED)
  .assistant("Well.");

const written = (message: Message): StreamEvent => ({ event: "on_message", data: { message } });
const [asked, calling, ...results] = messages.map(written) as [StreamEvent, StreamEvent, ...StreamEvent[]];
const model = { message_id: messages[1]?.id ?? "", model: "m" };
/** As after a person's answer: the denied call is never started. */
const EVENTS: readonly StreamEvent[] = [
  { event: "run_start", data: { agent: "assistant", model: "m", attempt: 1 } },
  asked,
  { event: "on_chat_model_start", name: "m", data: model },
  { event: "on_chat_model_end", name: "m", data: { message_id: model.message_id } },
  calling,
  { event: "on_tool_start", name: "execute", data: { call_id: "failed", args: { command: "failed" } } },
  { event: "on_tool_end", name: "execute", data: { call_id: "failed", error: FAILED, duration_ms: 1 } },
  ...results,
  { event: "done", data: { status: "success", stop_reason: "end_turn", usage: NO_USAGE } },
];

const dataOf = (frames: readonly (Frame | LongFrame)[]) =>
  frames.map(({ data }) => (typeof data === "string" ? data : [...data.parts].join(""))).join("\n");
const state = { messages: [], state: {} };

const langgraph = (mode: string) => {
  const fold = langgraphFrames(
    { modes: new Set([mode]), subgraphs: false },
    { calls: [], texts: [], state: {} },
  );
  return EVENTS.flatMap((event) => fold(event, RUN).map((frame) => frame.text()))
    .map((text) => (typeof text === "string" ? text : [...text.parts].join("")))
    .join("\n");
};
const agui = (isCurrent: boolean) => {
  const fold = aguiEvents({ threadId: "t", runId: "r", isCurrent, ...state, showsMessages: false });
  return dataOf(EVENTS.flatMap((event) => fold(event, RUN)));
};
const ui = (version: 5 | 6 | 7) => {
  const fold = uiChunks({ messageId: "a", version });
  return dataOf(EVENTS.flatMap((event) => fold(event, RUN)));
};

const SHOWN: Readonly<Record<string, () => string>> = {
  "LangGraph's mode values": () => langgraph("values"),
  "LangGraph's mode updates": () => langgraph("updates"),
  "LangGraph's mode messages": () => langgraph("messages"),
  "LangGraph's mode messages-tuple": () => langgraph("messages-tuple"),
  "LangGraph's protocol": () => {
    const fold = protocolEvents({ ...state, isPast: false });
    return JSON.stringify(EVENTS.flatMap((event, seq) => fold(event, { epoch: 1, seq: seq + 1 }, RUN)));
  },
  "LangGraph's states and histories": () => JSON.stringify(messages.map(messageShape)),
  "AG-UI 1.0": () => agui(true),
  "AG-UI before 1.0": () => agui(false),
  "AG-UI's snapshots": () => JSON.stringify(messages.flatMap((message) => messagesOf(message))),
  "the AI SDK 5": () => ui(5),
  "the AI SDK 6": () => ui(6),
  "the AI SDK 7": () => ui(7),
  "the AI SDK's history": () => JSON.stringify(uiHistory({ messages, open: [], state: {} })),
  "OpenAI's responses": () => {
    const { see } = respond({});
    return dataOf(EVENTS.flatMap((event) => see(event, RUN)) as Frame[]);
  },
  "OpenAI's items of server tools": () =>
    JSON.stringify(items({ messages, open: [], isServerTool: () => true })),
  "OpenAI's items of the client's tools": () =>
    JSON.stringify(items({ messages, open: [], isServerTool: () => false })),
  "an editor over ACP": () => {
    const shows = { notices: true, compaction: true };
    return JSON.stringify(EVENTS.flatMap(acpUpdates({ contextWindow: 1000, shows }).updatesOf));
  },
  "an editor's history": () => JSON.stringify(acpHistory(messages, [])),
};

test.each(Object.entries(SHOWN))("%s shows why a call failed or was denied", (_, shown) => {
  const text = shown();
  expect(text).toContain(FAILED);
  expect(text).toContain(DENIED);
});
