// The folds of the wires alone: a stock client can read every run.

import { StreamResponse, TaskState } from "@a2a-js/sdk";
import { HttpAgent } from "@ag-ui/client";
import { isSpecType } from "@modelcontextprotocol/client";
import { HttpAgent as OldHttpAgent } from "ag-ui-client-0";
import { readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from "ai";
import fc from "fast-check";
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import { ResponseStream } from "openai/lib/responses/ResponseStream";
import type { ResponseStreamEvent } from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import { type Message, NO_USAGE, userMessage } from "../../src/agent/core/message.ts";
import { storedEvent } from "../../src/agent/core/stored-json.ts";
import { align } from "../../src/engine/runs/align.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import type { Frame, LongFrame } from "../../src/server/http/sse.ts";
import { told } from "../../src/wires/a2a/history.ts";
import { project as taskUpdates } from "../../src/wires/a2a/table.ts";
import { messagesOf } from "../../src/wires/ag-ui/history.ts";
import { project as aguiEvents } from "../../src/wires/ag-ui/table.ts";
import { project } from "../../src/wires/ai-sdk/table.ts";
import { project as projectCall, type QuestionMode } from "../../src/wires/mcp/table.ts";
import { messageOf, readDataUrl, threadIdOf } from "../../src/wires/messages.ts";
import { project as chatChunks } from "../../src/wires/openai/chat/table.ts";
import { project as respond } from "../../src/wires/openai/responses/table.ts";
import { arbitraryRun, RUN } from "../support/arbitrary-run.ts";

test("the runs in these properties are valid", () => {
  fc.assert(
    fc.property(arbitraryRun, (events) => {
      expect(checkGrammar(events)).toEqual([]);
    }),
  );
});

test("an event is read from the log as it was written, for any text and any path", () => {
  const path = fc.option(fc.array(fc.string({ unit: "binary" }), { minLength: 1 }), { nil: undefined });
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), path, (delta, from) => {
      const event = { event: "on_chat_model_stream", data: { delta }, ...(from ? { path: from } : {}) };
      const json = JSON.stringify(event);
      expect(storedEvent({ json })).toEqual(JSON.parse(json));
    }),
  );
  const quoted = JSON.stringify({ event: "on_chat_model_stream", data: { delta: 'a "b" \\ c\n"}}' } });
  expect(storedEvent({ json: quoted })).toEqual(JSON.parse(quoted));
  const withMore = JSON.stringify({ event: "on_chat_model_stream", data: { delta: "Hi", id: "x" } });
  expect(storedEvent({ json: withMore })).toEqual(JSON.parse(withMore));
});

describe("the AI SDK's chunks of any run", () => {
  const chunksOf = (events: Parameters<ReturnType<typeof project>>[0][], version: 5 | 6 | 7 = 7) => {
    const fold = project({ messageId: "a_msg", version });
    const data = events.flatMap((event) => fold(event, RUN)).map((frame) => frame.data);
    expect(data.indexOf("[DONE]")).toBe(data.length - 1);
    return data.slice(0, -1).map((each) => JSON.parse(each) as UIMessageChunk);
  };

  test("match the client's own schema, and it reads them to their end", async () => {
    const schema = uiMessageChunkSchema();
    await fc.assert(
      fc.asyncProperty(arbitraryRun, async (events) => {
        const chunks = chunksOf(events);
        for (const chunk of chunks) expect(await schema.validate?.(chunk)).toMatchObject({ success: true });
        const stream = ReadableStream.from(chunks.filter(({ type }) => type !== "error"));
        let last: UIMessage | undefined;
        for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message;
        expect(last?.id).toBe("a_msg");
        const isOpen = ({ state }: { state?: string }) =>
          state === "streaming" || state === "input-streaming";
        expect(last?.parts.filter((part) => isOpen(part as { state?: string }))).toEqual([]);
      }),
    );
  });

  test.each([5, 6] as const)("contain nothing that version %s does not know", (version) => {
    const NEWER = ["reset-step", "steering-message", "custom", "tool-approval-response"];
    const newer = version === 5 ? [...NEWER, "tool-approval-request", "tool-output-denied"] : NEWER;
    fc.assert(
      fc.property(arbitraryRun, (events) => {
        const types = chunksOf(events, version).map(({ type }) => type as string);
        expect(types.filter((type) => newer.includes(type))).toEqual([]);
      }),
    );
  });
});

test("OpenAI's SDK reads the chunks of any run to their end, or to its error", async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryRun, fc.boolean(), async (events, includesUsage) => {
      const fold = chatChunks({ model: "assistant", includesUsage, outputOnly: false });
      const data = events.flatMap((event) => fold(event, RUN)).map((frame) => frame.data);
      const isFailed = events.at(-1)?.event === "error";
      if (isFailed) {
        expect(JSON.parse(data.at(-1) ?? "")).toMatchObject({ error: { message: "It broke." } });
        return;
      }
      expect(data.indexOf("[DONE]")).toBe(data.length - 1);
      const lines = data.slice(0, -1).map((each) => Buffer.from(`${each}\n`));
      const stream = ChatCompletionStream.fromReadableStream(ReadableStream.from(lines));
      const { choices, usage } = await stream.finalChatCompletion();
      expect(choices[0]?.finish_reason).toEqual(expect.any(String));
      expect(usage !== undefined && usage !== null).toBe(includesUsage);
    }),
  );
});

const AGUI_CLIENTS = [
  ["1.0.0", HttpAgent],
  ["0.0.59", OldHttpAgent as unknown as typeof HttpAgent],
] as const;

/** AG-UI's client, for an answer of these frames. */
function aguiReader(Client: typeof HttpAgent, frames: readonly (Frame | LongFrame)[]): HttpAgent {
  const textOf = ({ data }: Frame | LongFrame) =>
    typeof data === "string" ? data : [...data.parts].join("");
  const body = frames.map((frame) => `data: ${textOf(frame)}\n\n`).join("");
  const headers = { "content-type": "text/event-stream" };
  const fetch = async () => new Response(body, { headers });
  return new Client({ url: "http://localhost/", threadId: "t", fetch });
}

test.each(AGUI_CLIENTS)(
  "AG-UI's client %s verifies the events of any run, and has the same contents as the thread",
  async (version, Client) => {
    await fc.assert(
      fc.asyncProperty(arbitraryRun, fc.boolean(), async (events, showsMessages) => {
        const reader = { threadId: "t", runId: "r", isCurrent: version !== "0.0.59" };
        const told = events.flatMap((each) =>
          each.event === "on_message" && !each.path ? [each.data.message] : [],
        );
        const fold = aguiEvents({ ...reader, messages: told.slice(0, 1), state: {}, showsMessages });
        const frames = events.flatMap((event) => fold(event, RUN));
        const agent = aguiReader(Client, frames);
        if (!showsMessages)
          agent.setMessages([{ id: "msg_user", role: "user", content: `${told[0]?.content}` }]);
        const ends: string[] = [];
        await agent.runAgent(undefined, {
          onRunFinishedEvent: ({ outcome }) => void ends.push(outcome),
          onRunErrorEvent: ({ event }) => void ends.push(`error: ${event.message}`),
        });
        expect(ends).toHaveLength(1);
        const isOwn = (message: object) => !("subagentRunId" in message);
        // An answer of spaces alone is no message of the thread.
        const isBlank = (message: { role: string; content?: unknown; toolCalls?: object[] }) =>
          message.role === "assistant" && !message.toolCalls && `${message.content ?? ""}`.trim() === "";
        const held = agent.messages.filter(
          (message) =>
            isOwn(message) &&
            message.role !== "reasoning" &&
            message.role !== "activity" &&
            !isBlank(message as Parameters<typeof isBlank>[0]),
        );
        const kept = told.flatMap((message) => messagesOf(message));
        expect(held).toEqual(kept.filter(({ role }) => role !== "reasoning"));
      }),
    );
  },
);

test.each(["in its middle", "at its end"])(
  "AG-UI's client keeps a subagent's text once after another server has followed it again: %s",
  async (moment) => {
    const path = ["call"];
    const call = { id: "call", name: "task", args: {} };
    const spoken = (id: string, content: string): StreamEvent[] => [
      { event: "on_chat_model_start", name: "m", data: { message_id: id, model: "m" }, path },
      { event: "on_chat_model_stream", data: { delta: content }, path },
    ];
    const whole = (id: string, content: string): StreamEvent[] => [
      ...spoken(id, content),
      { event: "on_chat_model_end", name: "m", data: { message_id: id, stop_reason: "end_turn" }, path },
      {
        event: "on_message",
        data: { message: { id, created_at: "2026-01-01T00:00:00.000Z", role: "assistant", content } },
        path,
      },
    ];
    const following = (events: StreamEvent[]): StreamEvent[] => [
      { event: "on_tool_start", name: "task", data: { call_id: "call", args: {} } },
      {
        event: "on_subagent_start",
        data: {
          id: "call",
          call_id: "call",
          agent: "h",
          name: "h",
          parent: "a",
          thread_id: "c",
          run_id: "r1",
        },
      },
      ...events,
    ];
    const ended = (status: "interrupted" | "completed"): StreamEvent => ({
      event: "on_subagent_end",
      data: { id: "call", call_id: "call", status, summary: "" },
    });
    const resumed: StreamEvent = { event: "run_resumed", data: { attempt: 2 } };
    const discarded: StreamEvent = { event: "message_discard", data: { message_id: "two" }, path };
    const firstAttempt: StreamEvent[] =
      moment === "at its end"
        ? [...whole("one", "First."), ...whole("two", "Second."), ended("completed"), resumed]
        : [...whole("one", "First."), ...spoken("two", "Sec"), resumed, discarded, ended("interrupted")];
    const events: StreamEvent[] = [
      { event: "run_start", data: { agent: "assistant", model: "m", attempt: 1 } },
      ...following(firstAttempt),
      { event: "on_tool_end", name: call.name, data: { call_id: "call", interrupted: true, duration_ms: 0 } },
      ...following([...whole("one", "First."), ...whole("two", "Second.")]),
      ended("completed"),
      { event: "on_tool_end", name: call.name, data: { call_id: "call", output: "out", duration_ms: 0 } },
      { event: "done", data: { status: "success", stop_reason: "end_turn", usage: NO_USAGE } },
    ];
    const reader = { threadId: "t", runId: "r", isCurrent: true };
    const fold = aguiEvents({ ...reader, messages: [], state: {}, showsMessages: false });
    const agent = aguiReader(
      HttpAgent,
      events.flatMap((event) => fold(event, RUN)),
    );
    await agent.runAgent();
    expect(agent.messages.map(({ content }) => content)).toEqual(["First.", "Second."]);
  },
);

describe("the events of any run's response", () => {
  const eventsFrom = (events: readonly StreamEvent[], after?: number) => {
    const fold = respond(after === undefined ? {} : { after });
    const sent = events
      .flatMap((event) => fold.see(event, RUN))
      .map(({ event, data }) => {
        const parsed = JSON.parse(data) as ResponseStreamEvent;
        expect(event).toBe(parsed.type);
        return parsed;
      });
    return { sent, response: fold.response(RUN) };
  };

  test("are numbered without a gap, and OpenAI's SDK reads them to the response that a later reader gets", async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryRun, async (events) => {
        const { sent, response } = eventsFrom(events);
        expect(sent.map((each) => each.sequence_number)).toEqual(sent.map((_, index) => index));
        const lines = sent.map((each) => Buffer.from(`${JSON.stringify(each)}\n`));
        const final = await ResponseStream.fromReadableStream(ReadableStream.from(lines)).finalResponse();
        const { output_text: text, output, ...rest } = final;
        expect({ ...rest, output }).toMatchObject(response);
        expect(response.output.filter(({ status }) => status === "in_progress")).toEqual([]);
        const added = sent.filter(({ type }) => type === "response.output_item.added");
        const done = sent.flatMap((each) => (each.type === "response.output_item.done" ? [each] : []));
        expect(added).toHaveLength(done.length);
        const byIndex = done.toSorted((a, b) => a.output_index - b.output_index);
        expect(byIndex.map(({ item }) => item)).toEqual(response.output);
        expect(text).toEqual(expect.any(String));
      }),
    );
  });

  test("after a number are the rest, unchanged", () => {
    fc.assert(
      fc.property(arbitraryRun, fc.nat(60), (events, after) => {
        const { sent } = eventsFrom(events);
        expect(eventsFrom(events, after).sent).toEqual(sent.slice(after + 1));
      }),
    );
  });

  test("contain the output once, and no call of the server that a client would execute", () => {
    fc.assert(
      fc.property(arbitraryRun, (events) => {
        const { response } = eventsFrom(events);
        const said = events.flatMap(({ event, data, path }) =>
          event === "on_chat_model_stream" && !path && "delta" in data ? [data.delta] : [],
        );
        const isWritten = ({ type, id }: { type: string; id: string }) =>
          type === "message" && !id.startsWith("ask_");
        const written = response.output.filter(isWritten) as unknown as { content: { text: string }[] }[];
        expect(written.map(({ content }) => content[0]?.text).join("")).toBe(said.join(""));
        const forClient = events.flatMap(({ event, path, data }) =>
          event === "on_interrupt" && !path && data.kind === "tool" ? [data.call_id] : [],
        );
        const calls = response.output.filter(({ type }) => type === "function_call");
        expect(calls.filter(({ call_id }) => !forClient.includes(`${call_id}`))).toEqual([]);
      }),
    );
  });
});

test.each(AGUI_CLIENTS)(
  "AG-UI's client %s drops the files that the thread no longer keeps",
  async (_, Client) => {
    const reader = { threadId: "t", runId: "r", isCurrent: true };
    const fold = aguiEvents({ ...reader, messages: [], state: {}, showsMessages: false });
    const file = { bytes: 1, op: "write", content: "x" };
    const patches = [
      { "/a~b": file },
      { "/a~b": null, "/c": file },
      { "/unknown": null, "/d": { bytes: 9 } },
    ];
    const events: StreamEvent[] = [
      { event: "run_start", data: { agent: "assistant", model: "m", attempt: 1 } },
      ...patches.map((patch): StreamEvent => ({ event: "on_state", data: { key: "files", patch } })),
      { event: "done", data: { status: "success", stop_reason: "end_turn", usage: NO_USAGE } },
    ];
    const frames = events.flatMap((event) => fold(event, RUN));
    const agent = aguiReader(Client, frames);
    await agent.runAgent();
    expect(agent.state).toEqual({ todos: [], files: { "/c": "x", "/d": "[9 bytes]" } });
  },
);

describe("a client's list of messages", () => {
  const thread = (...ids: string[]): Message[] => ids.map((id) => ({ ...userMessage(id), id }));
  const sent = (...ids: string[]) => ids.map((id) => ({ id, content: id }));
  const whole = { isWhole: true, isRegenerated: false };

  test.each([
    ["the first message is new", thread(), sent("a"), { as: "new" }],
    ["one more is new", thread("a"), sent("a", "b"), { as: "new" }],
    ["the newest one again is a repeat", thread("a", "b"), sent("a", "b"), { as: "repeat" }],
    ["an older one again replaces it", thread("a", "b"), sent("a"), { as: "replacement", of: "a" }],
    [
      "one in place of another replaces it",
      thread("a", "b", "c"),
      sent("a", "x"),
      { as: "replacement", of: "b" },
    ],
    ["unknown ids alone are new", thread("a", "b"), sent("x", "y"), { as: "new" }],
    ["unknown ids, one more than there are, are new", thread("a", "b"), sent("x", "y", "z"), { as: "new" }],
  ] as const)("%s", (_, known, list, alignment) => {
    expect(align(known, list, whole)).toEqual(alignment);
  });

  test("repeats a request if the newest one is sent again, even if its client calls a JPEG a PNG", () => {
    const content = [{ type: "image", media_type: "image/png", data: "/9j/4AAQ" } as const];
    const known = { ...userMessage(content), id: "a" };
    expect(known.content).toMatchObject([{ media_type: "image/jpeg" }]);
    expect(align([known], [{ id: "a", content }], whole)).toEqual({ as: "repeat" });
  });

  test("replaces the newest one if its content differs or it is regenerated", () => {
    expect(align(thread("a"), [{ id: "a", content: "other" }], whole)).toEqual({
      as: "replacement",
      of: "a",
    });
    expect(align(thread("a"), sent("a"), { ...whole, isRegenerated: true })).toEqual({
      as: "replacement",
      of: "a",
    });
  });

  test("adds a single message to the thread", () => {
    expect(align(thread("a", "b"), sent("x"), { isWhole: false, isRegenerated: false })).toEqual({
      as: "new",
    });
  });

  test("keeps ids of threads and messages that are valid here", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 200 }), (id) => {
        expect(threadIdOf(id)).toMatch(/^[A-Za-z0-9_-]{1,128}$/);
        expect(messageOf({ id, content: "x" }).id).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
        expect(threadIdOf(threadIdOf(id))).toBe(threadIdOf(id));
      }),
    );
    expect(threadIdOf("chat-1")).toBe("chat-1");
    expect(messageOf({ id: "m1", content: "x" }).id).toBe("m1");
  });

  test("only data: URLs are read", () => {
    expect(readDataUrl("data:text/plain;charset=utf-8;base64,aGk=")).toEqual({
      media_type: "text/plain",
      data: "aGk=",
    });
    for (const url of ["https://example.com/a.png", "data:text/plain,hi", "file:///etc/passwd", ""])
      expect(() => readDataUrl(url)).toThrow("Only `data:` URLs");
  });
});

describe("MCP's messages of any run", () => {
  const TOKEN = 7;
  const optionsOf = (asking: QuestionMode, comesBack: boolean) => ({
    ...{ id: 1, progressToken: TOKEN, asking, namesType: asking === "as_result" },
    shows: { forms: asking !== "never", addresses: false },
    cursorOf: comesBack ? () => "call" : undefined,
  });
  const framesOf = (events: readonly StreamEvent[], asking: QuestionMode, comesBack: boolean) => {
    const { fold } = projectCall(optionsOf(asking, comesBack));
    return events.flatMap((event) => fold(event, RUN));
  };

  test("match the client's own schemas, and end with the answer or a form", () => {
    const asking = fc.constantFrom<QuestionMode>("within", "as_result", "never");
    fc.assert(
      fc.property(arbitraryRun, asking, fc.boolean(), (events, how, comesBack) => {
        const frames = framesOf(events, how, comesBack);
        const messages = frames
          .filter(({ data }) => data !== "")
          .map(({ data }) => JSON.parse(data) as object);
        for (const message of messages)
          expect(isSpecType.JSONRPCMessage(message), JSON.stringify(message)).toBe(true);
        const last = messages.at(-1) as { id?: unknown; method?: string; result?: { resultType?: string } };
        for (const message of messages.slice(0, -1))
          expect(isSpecType.ProgressNotification(message), JSON.stringify(message)).toBe(true);
        const questions = events.flatMap(({ event, path, data }) =>
          event === "on_interrupt" && !path ? [data] : [],
        );
        // A person does not carry out a call of a front end.
        const asks = questions.length > 0 && questions.every(({ kind }) => kind !== "tool");
        if (how === "within" && asks) expect(isSpecType.ElicitRequest(last)).toBe(true);
        else if (how === "as_result" && asks) expect(last.result?.resultType).toBe("input_required");
        else expect(isSpecType.CallToolResult(last.result)).toBe(true);
        const progress = messages.flatMap((message) =>
          isSpecType.ProgressNotification(message) ? [message.params.progress] : [],
        );
        expect(progress).toEqual([...new Set(progress)].toSorted((a, b) => a - b));
      }),
    );
  });

  test("are the same for a returning reader, whose ids contain their number", () => {
    fc.assert(
      fc.property(arbitraryRun, (events) => {
        const frames = framesOf(events, "within", true);
        expect(framesOf(events, "within", true)).toEqual(frames);
        expect(frames.map(({ id }) => id)).toEqual(frames.map((_, index) => `call.${index + 1}`));
      }),
    );
  });

  test("increase their progress through silences", () => {
    fc.assert(
      fc.property(arbitraryRun, fc.array(fc.nat(3)), (events, silences) => {
        const { fold, beat } = projectCall(optionsOf("never", false));
        const all = events.flatMap((event, index) => [
          ...fold(event, RUN),
          ...Array.from({ length: silences[index] ?? 0 }, () => beat?.() ?? { data: "{}" }),
        ]);
        const progress = all.flatMap(({ data }) => {
          const message: unknown = JSON.parse(data);
          return isSpecType.ProgressNotification(message) ? [message.params.progress] : [];
        });
        expect(progress).toEqual([...new Set(progress)].toSorted((a, b) => a - b));
      }),
    );
  });
});

test("an A2A client assembles the output of any run, and receives its end last", () => {
  fc.assert(
    fc.property(arbitraryRun, (events) => {
      const ref = { taskId: "thread.run_1", contextId: "thread" };
      const fold = taskUpdates({ id: 1, ref });
      const updates = events
        .flatMap((event) => fold(event, RUN))
        .map(({ data }) => StreamResponse.fromJSON(JSON.parse(data).result).payload);
      expect(updates[0]).toMatchObject({ $case: "task", value: { id: ref.taskId } });
      const artifacts = new Map<string, string>();
      for (const update of updates) {
        if (update?.$case !== "artifactUpdate" || !update.value.artifact) continue;
        const { artifactId, parts } = update.value.artifact;
        const before = update.value.append ? artifacts.get(artifactId) : "";
        const text = parts.map(({ content }) => (content?.$case === "text" ? content.value : "")).join("");
        artifacts.set(artifactId, (before ?? "") + text);
      }
      const messages = events.flatMap((each) =>
        each.event === "on_message" && !each.path ? [each.data.message] : [],
      );
      const held = [...artifacts].filter(([, text]) => text !== "");
      expect(held).toEqual(
        told(ref, messages).artifacts.map(({ artifactId, parts }) => [artifactId, textIn(parts[0])]),
      );
      const last = updates.at(-1);
      expect(last?.$case === "statusUpdate" && last.value.status?.state).toBe(endOf(events));
    }),
  );
});

const textIn = (part: object | undefined) => (part && "text" in part ? part.text : "");

/** The state of a task whose only run these events are. */
function endOf(events: readonly StreamEvent[]): TaskState {
  const end = events.at(-1);
  if (end?.event !== "done") return TaskState.TASK_STATE_FAILED;
  return {
    success: TaskState.TASK_STATE_COMPLETED,
    interrupted:
      end.data.stop_reason === "tool_use"
        ? TaskState.TASK_STATE_INPUT_REQUIRED
        : TaskState.TASK_STATE_COMPLETED,
    cancelled: TaskState.TASK_STATE_CANCELED,
    error: TaskState.TASK_STATE_FAILED,
  }[end.data.status];
}
