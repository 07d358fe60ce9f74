// Items that clients add to conversations and delete from them, as OpenAI's own SDK and the sessions of its Agents SDK do.

import { Agent, OpenAIConversationsSession, OpenAIProvider, Runner, tool } from "@openai/agents";
import type OpenAI from "openai";
import type { ResponseInputItem } from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Message, textOf } from "../../../src/agent/core/message.ts";
import type { Script } from "../../../src/agent/models/scripted.ts";
import { saidIn, statusesOf, threadsOf } from "../../support/native.ts";
import { conversationOf, itemOf, model, SLOW, started, WHERE } from "./responses.ts";

const say = (content: string, role: "user" | "assistant" | "system" = "user"): ResponseInputItem => ({
  ...{ type: "message", role, content },
});
const call = (call_id: string, name = "where"): ResponseInputItem => ({
  ...{ type: "function_call", call_id, name, arguments: "{}" },
});
const output = (call_id: string, text: string): ResponseInputItem => ({
  ...{ type: "function_call_output", call_id, output: text },
});

/** A conversation of an agent that says what it reads. */
async function conversation(items: ResponseInputItem[] = [], script?: Script, config?: object) {
  let read: readonly Message[] = [];
  const server = await started((request, n) => {
    read = request.messages;
    return script ? script(request, n) : { say: "Well." };
  }, config);
  const { client } = server;
  const { id } = await client.conversations.create({ items });
  const add = (...more: ResponseInputItem[]) => client.conversations.items.create(id, { items: more });
  const remove = (item: string) => client.conversations.items.delete(item, { conversation_id: id });
  const listed = async () => {
    const all = [];
    for await (const item of client.conversations.items.list(id, { order: "asc" })) all.push(item);
    return all;
  };
  const types = async () => (await listed()).map(({ type }) => type);
  const idOf = async (type: string) => (await listed()).findLast((item) => item.type === type)?.id ?? "";
  const answer = (input: ResponseInputItem[] | string) =>
    client.responses.create({ model, input, conversation: id });
  const seen = () => read.map((each) => [each.role, ("error" in each && each.error) || textOf(each.content)]);
  return { ...server, id, add, remove, listed, types, idOf, answer, seen };
}

describe("items added to a conversation", () => {
  test("are its history: listed with their ids, and part of the next answer's context", async () => {
    const { client, id, add, listed, answer, seen } = await conversation([say("I am Ada.")]);
    const added = await add(say("Hello Ada.", "assistant"), call("c1"), output("c1", "Vienna"));
    expect(added).toMatchObject({ object: "list", has_more: false });
    expect(added.data.map(({ type }) => type)).toEqual(["message", "function_call", "function_call_output"]);
    const all = await listed();
    expect(all.slice(1)).toEqual(added.data);
    for (const item of all)
      expect(await client.conversations.items.retrieve(item.id ?? "", { conversation_id: id })).toEqual(item);
    await answer("Where am I?");
    expect(seen()).toEqual([
      ["user", "I am Ada."],
      ["assistant", "Hello Ada."],
      ["tool", "Vienna"],
      ["user", "Where am I?"],
    ]);
  });

  test("call no model, and block no one", async () => {
    const { url, id, add } = await conversation();
    await add(say("one"));
    await add(say("two"), say("three", "assistant"));
    expect(await saidIn(url, id)).toEqual(["one", "two", "three"]);
    expect(await statusesOf(url, id)).toEqual(["success", "success"]);
    expect(await threadsOf(url)).toMatchObject([{ id, status: "idle" }]);
  });

  test("keep the thoughts and server calls that they contain", async () => {
    const { add, listed } = await conversation();
    const made = { type: "mcp_call", id: "m", server_label: "skein", arguments: '{"a":1}' } as const;
    await add(
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }] },
      say("I look.", "assistant"),
      { ...made, name: "current_datetime", output: "noon" },
      {
        ...made,
        name: "execute",
        error: { type: "mcp_tool_execution_error", content: [{ type: "text", text: "It failed." }] } as never,
      },
    );
    expect(await listed()).toMatchObject([
      { type: "reasoning", summary: [{ text: "Hm." }] },
      { type: "message", role: "assistant" },
      {
        type: "mcp_call",
        name: "current_datetime",
        arguments: '{"a":1}',
        output: "noon",
        status: "completed",
      },
      {
        ...{ type: "mcp_call", name: "execute", output: null, status: "failed" },
        error: { content: [{ text: "It failed." }] },
      },
    ]);
  });

  test("keep the images and files of an output", async () => {
    const { add, listed } = await conversation();
    const image_url =
      "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const parts = [
      { type: "input_text" as const, text: "A dot." },
      { type: "input_image" as const, image_url, detail: "auto" as const },
    ];
    await add(call("c1"), { type: "function_call_output", call_id: "c1", output: parts });
    expect((await listed()).at(-1)).toMatchObject({ type: "function_call_output", output: parts });
  });

  test("can contain a call first and its output later, in the conversation or with the next response", async () => {
    for (const later of ["as an item", "with a response"]) {
      const { add, types, answer, seen } = await conversation([say("Where am I?")]);
      await add(call("c1"));
      expect(await types()).toEqual(["message", "function_call"]);
      if (later === "as an item") await add(output("c1", "Vienna"));
      else expect((await answer([output("c1", "Vienna")])).output_text).toBe("Well.");
      expect((await types()).slice(0, 3)).toEqual(["message", "function_call", "function_call_output"]);
      await answer("And now?");
      expect(seen().filter(([role]) => role === "tool")).toEqual([["tool", "Vienna"]]);
    }
  });

  test("are never reported as not run: the outcome of a call without an output is unknown", async () => {
    const { add, answer, seen } = await conversation([say("Where am I?")]);
    await add(call("c1"));
    await answer("And now?");
    expect(seen().find(([role]) => role === "tool")?.[1]).toMatch(/^Outcome unknown: /);
  });

  test("are refused where they cannot follow the existing ones", async () => {
    const { client, id, add, types } = await conversation([say("hi")]);
    await expect(add(output("c9", "Vienna"))).rejects.toMatchObject({
      ...{ status: 400, param: "items", message: expect.stringContaining("`c9`") },
    });
    await add(call("c1"), output("c1", "Vienna"));
    await expect(add(output("c1", "Graz"))).rejects.toMatchObject({ status: 400 });
    await add(call("c2"));
    await expect(add(output("c2", "Graz"), output("c2", "Linz"))).rejects.toMatchObject({ status: 400 });
    await expect(add({ type: "web_search_call" } as never)).rejects.toMatchObject({ param: "items[0]" });
    const many = Array.from({ length: 1001 }, () => say("x"));
    await expect(add(...many)).rejects.toMatchObject({ status: 400 });
    const nowhere = client.conversations.items.create("none", { items: [say("x")] });
    await expect(nowhere).rejects.toMatchObject({ status: 404 });
    await expect(client.conversations.create({ items: [output("c9", "x")] })).rejects.toMatchObject({
      status: 400,
    });
    expect(await types()).toEqual(["message", "function_call", "function_call_output", "function_call"]);
    expect((await client.conversations.items.create(id, { items: [] })).data).toEqual([]);
  });

  test("cannot exceed a thread's limit, or contain system messages if the server refuses them", async () => {
    const full = await conversation([], undefined, { limits: { thread_bytes: 2000 } });
    await full.add(say("a".repeat(1000)));
    await expect(full.add(say("b".repeat(1000)))).rejects.toMatchObject({ code: "limit_exceeded" });
    expect(await full.types()).toEqual(["message"]);
    const strict = await conversation([], undefined, { system_messages: "refuse" });
    await expect(strict.add(say("Be short.", "system"))).rejects.toMatchObject({
      status: 400,
      param: "items",
    });
    const items = [say("Be short.", "system")];
    await expect(strict.client.conversations.create({ items })).rejects.toMatchObject({ status: 400 });
  });

  test("wait for a response in progress, and for its open answers", async () => {
    const busy = await conversation([], () => SLOW);
    const response = await busy.client.responses.create({
      ...{ model, input: "go", conversation: busy.id, background: true },
    });
    await expect(busy.add(say("x"))).rejects.toMatchObject({ status: 409, code: "thread_busy" });
    await busy.client.responses.cancel(response.id);

    const asks = await conversation([], (_, n) =>
      n === 0
        ? {
            call: [
              { tool: "where", id: "c1" },
              { tool: "where", id: "c2" },
            ],
          }
        : { say: "I see." },
    );
    await asks.client.responses.create({ model, input: "go", conversation: asks.id, tools: [WHERE] });
    for (const items of [[say("x")], [output("c1", "Graz")]])
      await expect(asks.add(...items)).rejects.toMatchObject({ status: 409, code: "thread_busy" });
    await asks.add(output("c1", "Graz"), output("c2", "Linz"));
    await asks.answer("And?");
    expect(asks.seen().filter(([role]) => role === "tool")).toEqual([
      ["tool", "Graz"],
      ["tool", "Linz"],
    ]);
  });
});

describe("a deleted item", () => {
  test("leaves the conversation, at the end and in the middle, and the earlier form is kept as a branch", async () => {
    const { url, id, add, remove, listed } = await conversation([say("one"), say("two"), say("three")]);
    const [first, second, third] = await listed();
    expect(await remove(third?.id ?? "")).toMatchObject({ id, object: "conversation" });
    await add(say("four"));
    await remove(first?.id ?? "");
    expect(await saidIn(url, id)).toEqual(["two", "four"]);
    expect((await listed())[0]).toEqual(second);
    const branches = (await (await fetch(`${url}/threads/${id}/branches`)).json()) as { items: unknown[] };
    expect(branches.items).toHaveLength(2);
    await expect(remove(third?.id ?? "")).rejects.toMatchObject({ status: 404 });
  });

  test("is deleted together with dependent ones: a call with its output, an answer with its thoughts", async () => {
    const { add, remove, types, idOf } = await conversation([say("go")]);
    await add(
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }] },
      say("Looking.", "assistant"),
      ...[call("c1"), call("c2"), output("c1", "A"), output("c2", "B")],
    );
    await remove("fc_c1");
    expect(await types()).toEqual([
      ...["message", "reasoning", "message", "function_call", "function_call_output"],
    ]);
    await remove(await idOf("function_call_output"));
    expect(await types()).toEqual(["message", "reasoning", "message", "function_call"]);
    await remove("fc_c2");
    await remove(await idOf("reasoning"));
    expect(await types()).toEqual(["message", "message"]);
    await add(
      { type: "reasoning", id: "rs_2", summary: [{ type: "summary_text", text: "So." }] },
      say("So.", "assistant"),
    );
    await remove(await idOf("message"));
    expect(await types()).toEqual(["message", "message"]);
  });

  test("cannot be an output after which the conversation has continued", async () => {
    const { add, remove, idOf, types } = await conversation([say("go")]);
    await add(call("c1"), output("c1", "A"), say("I see.", "assistant"));
    await expect(remove(await idOf("function_call_output"))).rejects.toMatchObject({
      ...{ status: 400, message: expect.stringContaining("`fc_c1`") },
    });
    await remove("fc_c1");
    expect(await types()).toEqual(["message", "message"]);
  });
});

describe("a session of the Agents SDK", () => {
  const where = tool({
    ...{ name: "where", description: "Where.", parameters: z.object({}), execute: () => "Vienna" },
  });
  const runnerFor = (openAIClient: OpenAI) =>
    new Runner({
      ...{ modelProvider: new OpenAIProvider({ openAIClient, useResponses: true }), tracingDisabled: true },
    });

  test("keeps the conversation of several runs with calls, returns it, and can be popped and cleared", async () => {
    const { url, client } = await started(({ messages }) =>
      messages.at(-1)?.role === "user" && textOf(messages.at(-1)?.content ?? "").includes("where")
        ? { call: [{ tool: "where", id: `call_${messages.length}` }] }
        : { say: `I have read ${messages.filter(({ role }) => role === "user").length}.` },
    );
    const session = new OpenAIConversationsSession({ client });
    const agent = new Agent({ name: "Front", model, tools: [where] });
    const runner = runnerFor(client);
    expect((await runner.run(agent, "where am I?", { session })).finalOutput).toBe("I have read 1.");
    expect((await runner.run(agent, "And now?", { session })).finalOutput).toBe("I have read 2.");
    const items = await session.getItems();
    expect(items.map((item) => item.type)).toEqual([
      ...["message", "function_call", "function_call_result", "message", "message", "message"],
    ]);
    expect(await session.getItems(2)).toEqual(items.slice(-2));
    expect(await session.popItem()).toEqual(items.at(-1));
    expect(await session.getItems()).toEqual(items.slice(0, -1));
    const id = await session.getSessionId();
    await session.clearSession();
    await expect(client.conversations.retrieve(id)).rejects.toMatchObject({ status: 404 });
    expect((await threadsOf(url)).map((thread) => thread.id)).not.toContain(id);
  });

  test("keeps the agent's thoughts and text around calls of its own tools, without their outputs", async () => {
    const { client } = await started((_, n) =>
      n === 0
        ? { think: "Hm.", say: "I look.", call: [{ tool: "current_datetime" }] }
        : { say: `Answer ${n}.` },
    );
    const session = new OpenAIConversationsSession({ client });
    const agent = new Agent({ name: "Front", model });
    await runnerFor(client).run(agent, "When?", { session });
    const types = (await session.getItems()).map((item) => item.type);
    expect(types).toEqual(["message", "reasoning", "message", "message"]);
    expect((await runnerFor(client).run(agent, "Sure?", { session })).finalOutput).toBe("Answer 2.");
    expect(await session.getItems()).toHaveLength(6);
  });

  test("can be popped until it is empty, including calls", async () => {
    const { client } = await started([]);
    const session = new OpenAIConversationsSession({ client });
    await session.addItems([
      { type: "message", role: "user", content: "go" },
      { type: "function_call", callId: "c1", name: "where", arguments: "{}", status: "completed" },
      {
        ...{ type: "function_call_result", callId: "c1", name: "where", status: "completed" },
        output: "Vienna",
      },
      {
        ...{ type: "message", role: "assistant", status: "completed" },
        content: [{ type: "output_text", text: "You are in Vienna." }],
      },
    ]);
    const popped = [];
    for (let item = await session.popItem(); item; item = await session.popItem()) popped.push(item.type);
    expect(popped).toEqual(["message", "function_call_result", "function_call", "message"]);
    expect(await session.getItems()).toEqual([]);
  });
});

describe("the output of a forced function", () => {
  const forced = { type: "function" as const, name: "where" };

  test.each([["previous_response_id"], ["conversation"]])(
    "continues the conversation, by %s",
    async (how) => {
      const { client, types, seen, id, url } = await conversation([], (_, n) =>
        n === 0 ? { say: '```json\n{"city":"Graz"}\n```' } : { say: '{"sky":"rain"}' },
      );
      const asked = await client.responses.create({
        ...{ model, input: "Graz?", conversation: id, tools: [WHERE], tool_choice: forced },
      });
      const { call_id, arguments: args } = itemOf(asked, "function_call");
      expect(JSON.parse(args)).toEqual({ city: "Graz" });
      const input = [output(call_id, "rain")];
      const place = how === "conversation" ? { conversation: id } : { previous_response_id: asked.id };
      const next = await client.responses.create({ model, input, tools: [WHERE], ...place });
      expect(next).toMatchObject({
        status: "completed",
        output_text: '{"sky":"rain"}',
        conversation: { id },
      });
      expect(next.output.map(({ type }) => type)).toEqual(["message"]);
      expect(seen().slice(-1)).toEqual([["tool", "rain"]]);
      expect((await types()).slice(2)).toEqual(["function_call", "function_call_output", "message"]);
      await expect(client.responses.create({ model, input, ...place })).rejects.toMatchObject({
        status: 409,
      });
      expect(await statusesOf(url, id)).toEqual(["success", "success"]);
    },
  );

  test("can be added as an item first", async () => {
    const { client, add, answer, seen, id } = await conversation([], (_, n) => ({ say: n ? "Yes." : "{}" }));
    const asked = await client.responses.create({
      ...{ model, input: "Graz?", conversation: id, tools: [WHERE], tool_choice: forced },
    });
    await add(output(itemOf(asked, "function_call").call_id, "rain"));
    await answer("And?");
    expect(seen().slice(-2)).toEqual([
      ["tool", "rain"],
      ["user", "And?"],
    ]);
    expect(conversationOf(asked)).toBe(id);
  });
});
