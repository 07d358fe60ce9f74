// The Responses API of OpenAI's own SDK against the whole server.

import OpenAI from "openai";
import type {
  FunctionTool,
  Response,
  ResponseFunctionToolCall,
  ResponseInputItem,
  ResponseOutputItem,
  ResponseStreamEvent,
} from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import type { Script, Turn } from "../../../src/models/scripted.ts";
import { startServer } from "../../support/server.ts";
import { AGENTS } from "./agents.ts";

async function started(script: readonly Turn[] | Script, config?: object) {
  const { url, app } = await startServer({ script, agents: AGENTS, ...(config ? { config } : {}) });
  const clientWith = (headers: Record<string, string> = {}, maxRetries = 2) =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", defaultHeaders: headers, maxRetries });
  return { url, app, clientWith, client: clientWith() };
}

const model = "assistant";
const SLOW: Turn = { say: "a ".repeat(2000), delay_ms: 20 };
const WHERE: FunctionTool = {
  ...{ name: "where", description: "Where.", strict: false },
  type: "function",
  parameters: { type: "object", properties: {} },
};

const typesOf = ({ output }: { output: readonly { type: string }[] }) => output.map(({ type }) => type);
const itemOf = <T extends ResponseOutputItem["type"]>({ output }: Response, type: T) => {
  const item = output.find((each) => each.type === type);
  if (!item) throw new Error(`There is no ${type}.`);
  return item as Extract<ResponseOutputItem, { type: T }>;
};
const read = async <T>(url: string, path: string) => (await (await fetch(url + path)).json()) as T;
const threadsOf = async (url: string) => (await read<{ items: { id: string }[] }>(url, "/threads")).items;
const runsOf = async (url: string, { conversation }: Pick<Response, "conversation">) => {
  const path = `/threads/${conversation?.id}/runs`;
  return (await read<{ items: { status: string }[] }>(url, path)).items.map(({ status }) => status);
};
const saidIn = async (url: string, thread: string | undefined) => {
  const path = `/threads/${thread}/messages`;
  const { items } = await read<{ items: { role: string; content: string }[] }>(url, path);
  return items.filter(({ role }) => role !== "tool").map(({ content }) => content);
};

describe("a client of responses", () => {
  test("streams an answer in pieces, its reasoning apart, with usage", async () => {
    const { client } = await started([
      { think: "Let me see.", say: "You said {{user}} to me.", usage: { input_tokens: 7 } },
    ]);
    const stream = client.responses.stream({ model, input: "hello" });
    const pieces: string[] = [];
    stream.on("response.output_text.delta", ({ delta }) => pieces.push(delta));
    const response = await stream.finalResponse();
    expect(pieces.join("")).toBe("You said hello to me.");
    expect(pieces.length).toBeGreaterThan(3);
    expect(response).toMatchObject({ status: "completed", model, output_text: "You said hello to me." });
    expect(typesOf(response)).toEqual(["reasoning", "message"]);
    expect(itemOf(response, "reasoning").summary).toMatchObject([{ text: "Let me see." }]);
    expect(response.usage).toMatchObject({ input_tokens: 7, output_tokens: 6, total_tokens: 13 });
  });

  test("gets a whole answer, and the same one later", async () => {
    const { client } = await started([{ say: "Hello." }]);
    const response = await client.responses.create({
      ...{ model, input: "hi", instructions: "Be short.", metadata: { topic: "greeting" } },
    });
    expect(response).toMatchObject({ output_text: "Hello.", instructions: "Be short." });
    const later = await client.responses.retrieve(response.id);
    expect(later).toMatchObject({ id: response.id, status: "completed", output: response.output });
    expect(later.metadata).toEqual({ topic: "greeting" });
  });

  test("sees a tool call of the server with its arguments and result, and carries out nothing", async () => {
    const { client } = await started([
      { say: "Looking.", call: [{ tool: "current_datetime", args: { time_zone: "UTC" } }] },
      { say: "It is late." },
    ]);
    const stream = client.responses.stream({ model, input: "how late is it?" });
    const response = await stream.finalResponse();
    expect(typesOf(response)).toEqual(["message", "mcp_call", "message"]);
    const call = itemOf(response, "mcp_call");
    expect(call).toMatchObject({ name: "current_datetime", server_label: "skein", status: "completed" });
    expect(JSON.parse(call.arguments)).toEqual({ time_zone: "UTC" });
    expect(call.output).toContain("UTC");
  });

  test("continues with previous_response_id on one thread, and forks where it goes back", async () => {
    const { url, client } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    const first = await client.responses.create({ model, input: "first" });
    const second = await client.responses.create({ model, input: "second", previous_response_id: first.id });
    expect(second.conversation).toEqual(first.conversation);
    expect(second.previous_response_id).toBe(first.id);
    const other = await client.responses.create({ model, input: "other", previous_response_id: first.id });
    expect(other.conversation).not.toEqual(first.conversation);
    expect(await saidIn(url, first.conversation?.id)).toEqual(["first", "A.", "second", "B."]);
    expect(await saidIn(url, other.conversation?.id)).toEqual(["first", "A.", "other", "C."]);
  });

  test("repeats its instructions with every request, and the thread has them once", async () => {
    const { url, client } = await started([{ say: "A." }, { say: "B." }]);
    const first = await client.responses.create({ model, input: "first", instructions: "Be short." });
    await client.responses.create({
      ...{ model, input: "second", instructions: "Be short.", previous_response_id: first.id },
    });
    expect(await saidIn(url, first.conversation?.id)).toEqual(["Be short.", "first", "A.", "second", "B."]);
  });

  test("makes a conversation, speaks in it, reads its items with the ids of the stream, and deletes it", async () => {
    const { client } = await started([
      { think: "Hm.", say: "Looking.", call: [{ tool: "current_datetime" }] },
      { say: "Done." },
    ]);
    const { id, metadata } = await client.conversations.create({
      metadata: { topic: "time" },
      items: [{ role: "user", content: "I am Ada." }],
    });
    expect(metadata).toEqual({ topic: "time" });
    const response = await client.responses.create({ model, input: "go", conversation: id });
    expect(response.conversation).toEqual({ id });
    const items = [];
    for await (const item of client.conversations.items.list(id, { order: "asc", limit: 2 }))
      items.push(item);
    expect(items.map(({ type }) => type)).toEqual([
      ...["message", "message", "reasoning", "message", "mcp_call", "message"],
    ]);
    expect(items.slice(2)).toMatchObject(response.output);
    const asked = await client.responses.inputItems.list(response.id);
    expect(asked.data).toMatchObject([{ role: "user", content: [{ type: "input_text", text: "go" }] }]);
    expect(await client.conversations.delete(id)).toMatchObject({ deleted: true });
    await expect(client.conversations.retrieve(id)).rejects.toMatchObject({ status: 404 });
    await expect(client.responses.retrieve(response.id)).rejects.toMatchObject({ status: 404 });
  });

  test("replays a whole conversation as items, and a new thread has it", async () => {
    let seen = "";
    const { url, client } = await started(({ messages }) => {
      seen = JSON.stringify(messages.map(({ role, content }) => [role, content]));
      return { say: "Ada." };
    });
    const response = await client.responses.create({
      model,
      input: [
        { role: "user", content: "I am Ada." },
        { type: "reasoning", id: "rs_1", summary: [] },
        {
          ...{ type: "message", role: "assistant", id: "msg_1", status: "completed" },
          content: [{ type: "output_text", text: "Hello Ada.", annotations: [] }],
        },
        { role: "user", content: [{ type: "input_text", text: "Who am I?" }] },
      ],
    });
    expect(response.output_text).toBe("Ada.");
    expect(JSON.parse(seen)).toEqual([
      ["user", "I am Ada."],
      ["assistant", "Hello Ada."],
      ["user", "Who am I?"],
    ]);
    expect(await threadsOf(url)).toHaveLength(1);
  });

  test("that stores nothing leaves no thread behind", async () => {
    const { url, client } = await started([{ say: "A." }]);
    const response = await client.responses.create({ model, input: "hi", store: false });
    expect(response).toMatchObject({ output_text: "A.", store: false });
    await expect.poll(() => threadsOf(url)).toEqual([]);
    await expect(client.responses.retrieve(response.id)).rejects.toMatchObject({ status: 404 });
  });

  test("deletes a response that stands alone, and no part of a conversation", async () => {
    const { url, client } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    const alone = await client.responses.create({ model, input: "alone" });
    await client.responses.delete(alone.id);
    expect(await threadsOf(url)).toEqual([]);
    const first = await client.responses.create({ model, input: "first" });
    await client.responses.create({ model, input: "second", previous_response_id: first.id });
    await expect(client.responses.delete(first.id)).rejects.toMatchObject({ status: 409 });
  });

  test("sends images and files, and the model sees them", async () => {
    let seen: unknown;
    const { client } = await started(({ messages }) => {
      seen = messages.at(-1)?.content;
      return { say: "A dot." };
    });
    const data = Buffer.from("not really an image").toString("base64");
    await client.responses.create({
      model,
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "What is it?" },
            { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${data}` },
            { type: "input_file", filename: "a.txt", file_data: `data:text/plain;base64,${data}` },
          ],
        },
      ],
    });
    expect(seen).toEqual([
      { type: "text", text: "What is it?" },
      { type: "image", media_type: "image/png", data },
      { type: "file", media_type: "text/plain", data, name: "a.txt" },
    ]);
  });
});

describe("a client that is asked", () => {
  const RUN_IT = { call: [{ tool: "execute", args: { command: "echo ran" }, id: "call_run" }] };
  const answered =
    (asked: Turn): Script =>
    ({ messages }, call) =>
      call === 0 ? asked : { say: `The result: ${JSON.stringify(messages.at(-1))}` };

  test.each([
    ["approves", true, "completed", "ran"],
    ["denies with a reason", false, "failed", "not today"],
  ])("%s, and the run continues", async (_, approve, status, words) => {
    const { client } = await started(answered(RUN_IT));
    const asked = await client.responses.create({ model, input: "run it" });
    expect(asked.status).toBe("completed");
    expect(typesOf(asked)).toEqual(["mcp_approval_request"]);
    const request = itemOf(asked, "mcp_approval_request");
    expect(request).toMatchObject({ name: "execute", server_label: "skein" });
    expect(JSON.parse(request.arguments)).toEqual({ command: "echo ran" });
    const stream = client.responses.stream({
      model,
      previous_response_id: asked.id,
      input: [
        {
          ...{ type: "mcp_approval_response", approval_request_id: request.id, approve },
          ...(approve ? {} : { reason: "not today" }),
        },
      ],
    });
    const response = await stream.finalResponse();
    expect(typesOf(response)).toEqual(["mcp_call", "message"]);
    expect(itemOf(response, "mcp_call")).toMatchObject({ status, approval_request_id: request.id });
    expect(response.output_text).toContain(words);
  });

  test("finds the question again with a fresh client, and answers it once", async () => {
    const { client, clientWith } = await started(answered(RUN_IT));
    const { id } = await client.responses.create({ model, input: "run it" });
    const fresh = clientWith();
    const request = itemOf(await fresh.responses.retrieve(id), "mcp_approval_request");
    const input: ResponseInputItem[] = [
      { type: "mcp_approval_response", approval_request_id: request.id, approve: true },
    ];
    const { output_text } = await fresh.responses.create({ model, previous_response_id: id, input });
    expect(output_text).toContain("ran");
    const again = client.responses.create({ model, previous_response_id: id, input });
    await expect(again).rejects.toMatchObject({ status: 409, code: "interrupt_closed" });
  });

  test("is refused where it sends an answer together with a new message, in either order", async () => {
    const { url, client } = await started(answered(RUN_IT));
    const asked = await client.responses.create({ model, input: "run it" });
    const request = itemOf(asked, "mcp_approval_request");
    const answer: ResponseInputItem = {
      ...{ type: "mcp_approval_response", approval_request_id: request.id, approve: true },
    };
    const message: ResponseInputItem = { role: "user", content: "And then?" };
    const conversation = asked.conversation?.id;
    for (const input of [
      [answer, message],
      [message, answer],
    ])
      for (const place of [{ previous_response_id: asked.id }, ...(conversation ? [{ conversation }] : [])])
        await expect(client.responses.create({ model, input, ...place })).rejects.toMatchObject({
          ...{ status: 400, code: "invalid_request", param: "input" },
        });
    expect(await runsOf(url, asked)).toEqual(["interrupted"]);
    const response = await client.responses.create({
      ...{ model, input: [answer], previous_response_id: asked.id },
    });
    expect(response.output_text).toContain("ran");
  });

  test("answers a question with its next words", async () => {
    const question = { question: "Which?", options: ["red", "blue"] };
    const { client } = await started(answered({ call: [{ tool: "ask_user", args: question }] }));
    const asked = await client.responses.create({ model, input: "ask me" });
    expect(asked.output_text).toBe("Which?\n- red\n- blue");
    const response = await client.responses.create({
      ...{ model, input: "Blue", previous_response_id: asked.id },
    });
    expect(itemOf(response, "mcp_call")).toMatchObject({ name: "ask_user", status: "completed" });
    expect(response.output_text).toContain("blue");
  });

  test.each([
    ["the response that called it", true],
    ["no response: the call's id is enough", false],
  ])("carries out a tool of its own, on one thread, naming %s", async (_, isNamed) => {
    const { url, client } = await started(
      answered({ say: "Let me see.", call: [{ tool: "where", id: "call_where", args: { exact: true } }] }),
    );
    const tools = [WHERE];
    const stream = client.responses.stream({ model, input: "where am I?", tools });
    const asked = await stream.finalResponse();
    const call = itemOf(asked, "function_call");
    expect(call).toMatchObject({ name: "where", call_id: "call_where", status: "completed" });
    expect(JSON.parse(call.arguments)).toEqual({ exact: true });
    const output = { type: "function_call_output", call_id: call.call_id, output: "Vienna" } as const;
    const replay = [
      { role: "user", content: "where am I?" } as const,
      call as ResponseFunctionToolCall,
      output,
    ];
    const response = await client.responses.create({
      ...{ model, tools },
      ...(isNamed ? { previous_response_id: asked.id, input: [output] } : { input: replay }),
    });
    expect(response.output_text).toContain("Vienna");
    expect(typesOf(response)).toEqual(["message"]);
    expect(response.conversation).toEqual(asked.conversation);
    expect(await threadsOf(url)).toHaveLength(1);
    const items = await client.conversations.items.list(asked.conversation?.id ?? "", { order: "asc" });
    expect(typesOf({ output: items.data })).toEqual([
      ...["message", "message", "function_call", "function_call_output", "message"],
    ]);
  });

  test("keeps its calls and results when it replays them to a server that does not know them", async () => {
    let seen: unknown;
    const { client } = await started(({ messages }) => {
      seen = messages.map(({ role }) => role);
      return { say: "Vienna, then." };
    });
    const response = await client.responses.create({
      model,
      input: [
        { role: "user", content: "where am I?" },
        { type: "function_call", call_id: "call_1", name: "where", arguments: "{}" },
        { type: "function_call_output", call_id: "call_1", output: "Vienna" },
      ],
    });
    expect(seen).toEqual(["user", "assistant", "tool"]);
    expect(response.output_text).toBe("Vienna, then.");
  });

  test("answers no thread but those of its own kind with a call's id", async () => {
    const { url, client } = await started(({ messages }, call) =>
      call === 0 ? { call: [{ tool: "where", id: "call_where" }] } : { say: `${messages.length} messages` },
    );
    const { name, description, parameters } = WHERE;
    await fetch(`${url}/threads/mine/runs`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ input: "where?", tools: [{ name, description, parameters }] }),
    });
    const { conversation } = await client.responses.create({
      model,
      input: [{ type: "function_call_output", call_id: "call_where", output: "Vienna" }],
    });
    expect(conversation?.id).not.toBe("mine");
    expect(await read(url, "/threads/mine")).toMatchObject({ status: "interrupted" });
  });
});

describe("a response in the background", () => {
  test("answers at once, continues without its client, and can be read when it is done", async () => {
    const { client } = await started([{ say: "All the words there are.", delay_ms: 5 }]);
    const { id, status, background } = await client.responses.create({
      model,
      input: "go",
      background: true,
    });
    expect(["queued", "in_progress"]).toContain(status);
    expect(background).toBe(true);
    const statusNow = async () => (await client.responses.retrieve(id)).status;
    await expect.poll(statusNow).toBe("completed");
    expect((await client.responses.retrieve(id)).output_text).toBe("All the words there are.");
  });

  test("is resumed after the last event a client has, word for word, at any cut", async () => {
    const { url, client } = await started([
      { think: "Hm.", say: "one two three four five six", delay_ms: 5 },
    ]);
    const stream = await client.responses.create({ model, input: "go", background: true, stream: true });
    const seen: ResponseStreamEvent[] = [];
    for await (const event of stream) {
      seen.push(event);
      if (event.type === "response.output_text.delta") break;
    }
    const id = seen[0]?.type === "response.created" ? seen[0].response.id : "";
    const after = seen.at(-1)?.sequence_number ?? 0;
    const rest = await client.responses.retrieve(id, { stream: true, starting_after: after });
    for await (const event of rest) seen.push(event);
    expect(seen.map((each) => each.sequence_number)).toEqual(seen.map((_, index) => index));
    const text = seen.flatMap((each) => (each.type === "response.output_text.delta" ? [each.delta] : []));
    expect(text.join("")).toBe("one two three four five six");
    expect(await threadsOf(url)).toHaveLength(1);

    const replay = await client.responses.retrieve(id, { stream: true });
    const whole: ResponseStreamEvent[] = [];
    for await (const event of replay) whole.push(event);
    const withoutEcho = (events: ResponseStreamEvent[]) => events.filter((event) => !("response" in event));
    expect(withoutEcho(whole)).toEqual(withoutEcho(seen));
    for (const cut of [0, 3, whole.length - 2]) {
      const tail: ResponseStreamEvent[] = [];
      for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: cut }))
        tail.push(event);
      expect(tail).toEqual(whole.slice(cut + 1));
    }
  });

  test("is shown whole to a page that comes in the middle of it", async () => {
    const { client } = await started([{ say: "one two three four five six", delay_ms: 10 }]);
    const { id } = await client.responses.create({ model, input: "go", background: true });
    const stream = client.responses.stream({ response_id: id });
    expect((await stream.finalResponse()).output_text).toBe("one two three four five six");
  });

  test("is cancelled, and its conversation takes the next message", async () => {
    const { url, client } = await started(({ messages }) =>
      JSON.stringify(messages.at(-1)).includes("slowly") ? SLOW : { say: "Here." },
    );
    const { id } = await client.responses.create({ model, input: "slowly", background: true });
    const stream = await client.responses.retrieve(id, { stream: true });
    let last: ResponseStreamEvent | undefined;
    let isAsked = false;
    for await (const event of stream) {
      last = event;
      if (event.type !== "response.output_text.delta" || isAsked) continue;
      isAsked = true;
      expect(await client.responses.cancel(id)).toMatchObject({ id, status: "cancelled" });
    }
    expect(last).toMatchObject({ type: "response.incomplete", response: { status: "cancelled" } });
    const next = await client.responses.create({ model, input: "hello?", previous_response_id: id });
    expect(next.output_text).toBe("Here.");
    expect(await runsOf(url, next)).toEqual(["success", "cancelled"]);
    expect(await client.responses.cancel(next.id)).toMatchObject({ status: "completed" });
  });

  test("is busy until it ends: its client is refused, and does not try again", async () => {
    const { url, client } = await started([SLOW]);
    const busy = await client.responses.create({ model, input: "slowly", background: true });
    let requests = 0;
    const counting = new OpenAI({
      ...{ baseURL: `${url}/v1`, apiKey: "unused" },
      fetch: (input, init) => {
        requests++;
        return fetch(input, init);
      },
    });
    const more = counting.responses.create({ model, input: "more", previous_response_id: busy.id });
    await expect(more).rejects.toMatchObject({ status: 409, code: "thread_busy" });
    expect(requests).toBe(1);
    await client.responses.cancel(busy.id);
  });
});

describe("a response in the foreground", () => {
  test.each([[true], [false]])("is cancelled when its client leaves (streamed: %s)", async (stream) => {
    const { url, client } = await started([SLOW]);
    const { id } = await client.conversations.create();
    const leaving = new AbortController();
    const request = client.responses.create(
      { model, input: "go", conversation: id, stream },
      { signal: leaving.signal },
    );
    await expect.poll(() => runsOf(url, { conversation: { id } })).toEqual(["running"]);
    leaving.abort();
    await request.then(
      async (answer) => {
        if (Symbol.asyncIterator in answer) for await (const _ of answer);
      },
      () => {},
    );
    await expect.poll(() => runsOf(url, { conversation: { id } })).toEqual(["cancelled"]);
  });

  test("that fails says the provider's words and is not taken for an answer", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const { client } = await started([
      { say: "Half", fail },
      { say: "Half", fail },
    ]);
    const stream = client.responses.stream({ model, input: "go" });
    const failed = await stream.finalResponse();
    expect(failed).toMatchObject({ status: "failed", error: { message: "The provider said no." } });
    expect(itemOf(failed, "message")).toMatchObject({ status: "incomplete" });
    const whole = await client.responses.create({ model, input: "go" });
    expect(whole).toMatchObject({ status: "failed", error: { code: "server_error" } });
  });

  test("that the model cut short is incomplete", async () => {
    const { client } = await started([{ say: "Half", stop_reason: "max_tokens" }]);
    const { status, incomplete_details } = await client.responses.create({ model, input: "go" });
    expect({ status, incomplete_details }).toEqual({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
    });
  });
});

describe("a request is refused in OpenAI's shape", () => {
  const image = "https://example.com/a.png";
  test.each([
    ["tools[0]", { tools: [{ type: "web_search" }] }, "configured on the server"],
    ["text.format", { text: { format: { type: "grammar" } } }, "json_schema"],
    ["prompt", { prompt: { id: "pmpt_1" } }, "configured on the server"],
    ["max_tool_calls", { max_tool_calls: 3 }, "configured on the server"],
    ["tool_choice", { tool_choice: "required" }, "only `auto`"],
    ["previous_response_id", { previous_response_id: "resp_x", conversation: "c" }, "together"],
    ["background", { background: true, store: false }, "not stored"],
    ["input", { input: [] }, "there is none"],
    ["input[0]", { input: [{ type: "computer_call" }] }, "not supported"],
    [
      null,
      { input: [{ role: "user", content: [{ type: "input_image", image_url: image }] }] },
      "`data:` URLs",
    ],
  ])("%s", async (param, change, words) => {
    const { client } = await started([]);
    const body = { model, input: "hi", ...change } as OpenAI.Responses.ResponseCreateParamsNonStreaming;
    const error = await client.responses.create(body).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      status: 400,
      type: "invalid_request_error",
      code: "invalid_request",
      param,
    });
    expect((error as Error).message).toContain(words);
  });

  test("for a model, a response, a conversation and a route that do not exist", async () => {
    const { client } = await started([]);
    const response = `resp_${"x".repeat(22)}_thread`;
    for (const request of [
      () => client.responses.create({ model: "gpt-4", input: "hi" }),
      () => client.responses.create({ model, input: "hi", previous_response_id: response }),
      () => client.responses.create({ model, input: "hi", conversation: "none" }),
      () => client.responses.retrieve(response),
      () => client.responses.retrieve("resp_"),
      () => client.responses.cancel(response),
      () => client.responses.delete(response),
      () => client.responses.inputItems.list(response),
      () => client.conversations.retrieve("none"),
      () => client.conversations.items.list("none"),
      () => client.post("/responses/compact", { body: {} }),
      () => client.post("/responses/input_tokens", { body: {} }),
    ])
      await expect(request()).rejects.toMatchObject({ status: 404, type: "invalid_request_error" });
  });
});
