// Approvals, questions and the client's own tools in the Responses API, as OpenAI's own SDK answers them.

import type { ResponseFunctionToolCall, ResponseInputItem } from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import { type Message, textOf } from "../../../src/agent/core/message.ts";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { postJson, statusesOf, threadsOf } from "../../support/native.ts";
import { conversationOf, itemOf, model, started, typesOf, WHERE } from "./responses.ts";

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

  test("is refused if it sends an answer together with a new message, in either order", async () => {
    const { url, client } = await started(answered(RUN_IT));
    const asked = await client.responses.create({ model, input: "run it" });
    const request = itemOf(asked, "mcp_approval_request");
    const answer: ResponseInputItem = {
      ...{ type: "mcp_approval_response", approval_request_id: request.id, approve: true },
    };
    const message: ResponseInputItem = { role: "user", content: "And then?" };
    const conversation = conversationOf(asked);
    for (const input of [
      [answer, message],
      [message, answer],
    ])
      for (const place of [{ previous_response_id: asked.id }, { conversation }])
        await expect(client.responses.create({ model, input, ...place })).rejects.toMatchObject({
          ...{ status: 400, code: "invalid_request", param: "input" },
        });
    expect(await statusesOf(url, conversationOf(asked))).toEqual(["interrupted"]);
    const response = await client.responses.create({
      ...{ model, input: [answer], previous_response_id: asked.id },
    });
    expect(response.output_text).toContain("ran");
  });

  test("approves nothing with its next text", async () => {
    const { client } = await started([RUN_IT, { say: "As you like." }]);
    const asked = await client.responses.create({ model, input: "run it" });
    const next = await client.responses.create({ model, previous_response_id: asked.id, input: "yes" });
    expect(next.output_text).toBe("As you like.");
    const { data } = await client.conversations.items.list(conversationOf(next));
    expect(JSON.stringify(data)).not.toContain("ran\\n");
  });

  test("answers a question with its next text", async () => {
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
  ])("executes its own tool, on one thread, naming %s", async (_, isNamed) => {
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
    const items = await client.conversations.items.list(conversationOf(asked), { order: "asc" });
    expect(typesOf({ output: items.data })).toEqual([
      ...["message", "message", "function_call", "function_call_output", "message"],
    ]);
  });

  test("gives each of two calls its own result", async () => {
    const ids = ["c1", "c2"];
    const { client } = await started(({ messages }, n) => {
      if (n === 0) return { call: ids.map((id) => ({ tool: "where", id })) };
      return {
        say: messages.flatMap((each) => (each.role === "tool" ? textOf(each.content) : [])).join(", "),
      };
    });
    const asked = await client.responses.create({ model, input: "where are we?", tools: [WHERE] });
    const input = ids.map((call_id) => ({
      ...{ type: "function_call_output" as const, call_id, output: `Output of ${call_id}` },
    }));
    const response = await client.responses.create({ model, previous_response_id: asked.id, input });
    expect(response.output_text).toBe("Output of c1, Output of c2");
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

  test("keeps text and calls of one reply as one message, however often the client replays them", async () => {
    const seen: string[] = [];
    const { client } = await started(({ messages }) => {
      const callsOf = (each: Message) =>
        each.role === "assistant" ? (each.tool_calls ?? []).map(({ id }) => id) : [];
      seen.push(messages.map((each) => [each.role, ...callsOf(each)].join(" ")).join(", "));
      return { say: "Vienna, and noon." };
    });
    const call = (call_id: string) =>
      ({ type: "function_call", call_id, name: "where", arguments: "{}" }) as const;
    const output = (call_id: string) =>
      ({ type: "function_call_output", call_id, output: "Vienna" }) as const;
    const input: ResponseInputItem[] = [
      { role: "user", content: "where am I, and when?" },
      { type: "reasoning", id: "rs_1", summary: [] },
      { role: "assistant", content: "I look." },
      { type: "reasoning", id: "rs_2", summary: [] },
      ...[call("c1"), call("c2"), output("c1"), output("c2"), call("c3"), output("c3")],
    ];
    for (let n = 0; n < 2; n++) await client.responses.create({ model, input });
    expect(seen).toEqual(Array(2).fill("user, assistant c1 c2, tool, tool, assistant c3, tool"));
  });

  test("can answer only its own kind of threads with a call's id", async () => {
    const { url, client } = await started(({ messages }) =>
      messages.at(-1)?.role === "user"
        ? { call: [{ tool: "where", id: "call_where" }] }
        : { say: `${messages.length} messages` },
    );
    const { name, description, parameters } = WHERE;
    // This chat is not stored, so only its own client can answer.
    await client.chat.completions.create({
      ...{ model, messages: [{ role: "user", content: "where?" }] },
      tools: [{ type: "function", function: { name, parameters: { ...parameters } } }],
    });
    await postJson(
      `${url}/threads/mine/runs`,
      { input: "where?", tools: [{ name, description, parameters }] },
      { accept: "application/json" },
    );
    const { conversation } = await client.responses.create({
      model,
      input: [{ type: "function_call_output", call_id: "call_where", output: "Vienna" }],
    });
    const others = (await threadsOf(url)).filter(({ id }) => id !== conversation?.id);
    expect(others.map(({ id }) => id)).toContain("mine");
    const statuses = await Promise.all(others.map(({ id }) => statusesOf(url, id)));
    expect(statuses).toEqual([["interrupted"], ["interrupted"]]);
  });
});
