// Answers and conversations of the Responses API, as OpenAI's own SDK meets them.

import { describe, expect, test } from "vitest";
import { saidIn, statusesOf, threadsOf } from "../../support/native.ts";
import { conversationOf, itemOf, model, SLOW, started, typesOf } from "./responses.ts";

describe("a client of responses", () => {
  test("receives an answer in pieces, with separate reasoning and usage", async () => {
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

  test("receives a whole answer, and the same one later", async () => {
    const { client } = await started([{ say: "Hello." }]);
    const response = await client.responses.create({
      ...{ model, input: "hi", instructions: "Be short.", metadata: { topic: "greeting" } },
    });
    expect(response).toMatchObject({ output_text: "Hello.", instructions: "Be short." });
    const later = await client.responses.retrieve(response.id);
    expect(later).toMatchObject({ id: response.id, status: "completed", output: response.output });
    expect(later.metadata).toEqual({ topic: "greeting" });
  });

  test("sees a tool call of the server with its arguments and result, and executes nothing", async () => {
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

  test("continues with previous_response_id on one thread, and forks if it goes back", async () => {
    const { url, client } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    const first = await client.responses.create({ model, input: "first" });
    const second = await client.responses.create({ model, input: "second", previous_response_id: first.id });
    expect(second.conversation).toEqual(first.conversation);
    expect(second.previous_response_id).toBe(first.id);
    const other = await client.responses.create({ model, input: "other", previous_response_id: first.id });
    expect(other.conversation).not.toEqual(first.conversation);
    expect(await saidIn(url, conversationOf(first))).toEqual(["first", "A.", "second", "B."]);
    expect(await saidIn(url, conversationOf(other))).toEqual(["first", "A.", "other", "C."]);
  });

  test("repeats its instructions with every request, and the thread has them once", async () => {
    const { url, client } = await started([{ say: "A." }, { say: "B." }]);
    const first = await client.responses.create({ model, input: "first", instructions: "Be short." });
    await client.responses.create({
      ...{ model, input: "second", instructions: "Be short.", previous_response_id: first.id },
    });
    expect(await saidIn(url, conversationOf(first))).toEqual(["Be short.", "first", "A.", "second", "B."]);
  });

  test("creates a conversation, writes in it, reads its items with the ids of the stream, and deletes it", async () => {
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
    const page = await client.conversations.items.list(id, { limit: 6 });
    expect([page.has_more, page.data]).toEqual([false, items.toReversed()]);
    const asked = await client.responses.inputItems.list(response.id);
    expect(asked.data).toMatchObject([{ role: "user", content: [{ type: "input_text", text: "go" }] }]);
    expect(await client.conversations.delete(id)).toMatchObject({ deleted: true });
    await expect(client.conversations.retrieve(id)).rejects.toMatchObject({ status: 404 });
    await expect(client.responses.retrieve(response.id)).rejects.toMatchObject({ status: 404 });
  });

  test("changes a conversation's metadata, and reads one item", async () => {
    const { client } = await started([{ say: "Hello." }]);
    const { id } = await client.conversations.create({
      metadata: { topic: "a" },
      items: [{ type: "message", role: "user", content: "hi" }],
    });
    expect((await client.conversations.update(id, { metadata: { topic: "b" } })).metadata).toEqual({
      topic: "b",
    });
    expect((await client.conversations.retrieve(id)).metadata).toEqual({ topic: "b" });
    const [item] = (await client.conversations.items.list(id)).data;
    const itemId = String(item?.id);
    expect(await client.conversations.items.retrieve(itemId, { conversation_id: id })).toEqual(item);
    for (const [request, status, words] of [
      [() => client.conversations.items.delete("x", { conversation_id: "none" }), 404, "no conversation"],
      [() => client.conversations.items.retrieve("x", { conversation_id: id }), 404, "no item"],
      [() => client.conversations.update("none", { metadata: {} }), 404, "no conversation"],
    ] as const)
      await expect(request()).rejects.toMatchObject({ status, message: expect.stringContaining(words) });
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

  test("that is refused leaves no thread behind", async () => {
    const { url, client } = await started([]);
    const text = { format: { type: "json_schema" as const, name: "x", schema: { type: "text" } } };
    await expect(client.responses.create({ model, input: "hi", text })).rejects.toMatchObject({
      status: 400,
    });
    expect(await threadsOf(url)).toEqual([]);
  });

  test("can delete a response on its own, but no part of a conversation", async () => {
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
            { type: "input_text", text: "" },
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

describe("a response in the foreground", () => {
  test.each([[true], [false]])("is cancelled when its client leaves (streamed: %s)", async (stream) => {
    const { url, client } = await started([SLOW]);
    const { id } = await client.conversations.create();
    const leaving = new AbortController();
    const request = client.responses.create(
      { model, input: "go", conversation: id, stream },
      { signal: leaving.signal },
    );
    await expect.poll(() => statusesOf(url, id)).toEqual(["running"]);
    leaving.abort();
    await request.then(
      async (answer) => {
        if (Symbol.asyncIterator in answer) for await (const _ of answer);
      },
      () => {},
    );
    await expect.poll(() => statusesOf(url, id)).toEqual(["cancelled"]);
  });

  test("that fails contains the provider's error and is not mistaken for an answer", async () => {
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
