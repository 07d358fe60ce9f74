// What a stop leaves of an answer, and how it is continued.

import { expect, test } from "vitest";
import type { ModelRequest } from "../../src/agent/core/model.ts";
import { type Client, createClient, type StreamEvent } from "../../src/client/client.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import { type ServerOptions, startServer } from "../support/server.ts";

async function started(options: ServerOptions = {}) {
  const requests: ModelRequest[] = [];
  const script = (request: ModelRequest, call: number) => {
    requests.push(request);
    if (call === 0)
      return { think: "A tale.", say: `Once upon a time ${"and on ".repeat(500)}`, delay_ms: 5 };
    return { say: "Then the end." };
  };
  const { url } = await startServer({ script, ...options });
  return { url, requests, client: createClient({ baseUrl: url }) };
}

/** Begins an answer and stops it in the middle; returns all events of the run. */
async function stopped(client: Client): Promise<StreamEvent[]> {
  const { id } = await client.start("t", { input: "Tell me a tale." });
  const events: StreamEvent[] = [];
  let said = "";
  for await (const event of client.runs.events("t", id)) {
    events.push(event);
    if (event.event !== "on_chat_model_stream" || !("delta" in event.data)) continue;
    if (said.includes("time")) continue;
    said += event.data.delta;
    if (said.includes("time")) await client.stop("t", id);
  }
  return events;
}

test("stopping keeps the text, and the model learns once that it was cut off", async () => {
  const { client, requests } = await started();
  const events = await stopped(client);
  expect(checkGrammar(events)).toEqual([]);
  const text = events.flatMap((event) =>
    event.event === "on_chat_model_stream" && "delta" in event.data ? [event.data.delta] : [],
  );
  const { items } = await client.threads.messages("t");
  expect(items).toMatchObject([
    { role: "user" },
    { role: "assistant", content: text.join(""), incomplete: "stopped" },
  ]);
  for (const input of ["And now?", "And then?"]) {
    const { id } = await client.start("t", { input });
    for await (const _ of client.runs.events("t", id));
  }
  for (const { messages } of requests.slice(1)) {
    expect(messages.map(({ role }) => role).slice(0, 3)).toEqual(["user", "assistant", "user"]);
    expect(messages[1]?.content).toBe(text.join(""));
    expect(JSON.stringify(messages).match(/The user stopped your answer/g)).toHaveLength(1);
  }
});

test("an answer that was cut off continues where it ends; any other last message is refused", async () => {
  const { client, requests } = await started();
  await stopped(client);
  const { id } = await client.start("t", { continue: true });
  for await (const _ of client.runs.events("t", id));
  expect(await client.runs.get("t", id)).toMatchObject({ status: "success" });
  expect((await client.threads.messages("t")).items.map(({ role }) => role)).toEqual([
    ...["user", "assistant", "assistant"],
  ]);
  expect(requests[1]?.messages.at(-1)).toMatchObject({
    role: "user",
    content: expect.stringContaining("Continue exactly where it ends"),
  });
  await expect(client.start("t", { continue: true })).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining("cut off"),
  });
  await expect(client.start("unknown", { continue: true })).rejects.toMatchObject({ status: 400 });
});

test("a copy that ends with a question or a result can be answered, but not while a call is waiting", async () => {
  const { url } = await startServer({
    agents: "agents: { assistant: { model: 'scripted:test', tools: [current_datetime, ask_user] } }",
    script: ({ messages }) => {
      const { role, content } = messages.at(-1) ?? {};
      if (role === "tool") return { say: `After ${messages.length}.` };
      return {
        call: [{ tool: content === "Ask." ? "ask_user" : "current_datetime", args: { question: "Which?" } }],
      };
    },
  });
  const client = createClient({ baseUrl: url });
  const ran = async (thread: string, options: Parameters<typeof client.start>[1]) => {
    const { id } = await client.start(thread, options);
    for await (const _ of client.runs.events(thread, id));
    return (await client.threads.messages(thread)).items;
  };
  const [question, , result] = await ran("t", { input: "Go." });
  for (const until of [question, result]) {
    const copy = await client.threads.fork("t", { message_id: until?.id ?? "" });
    const messages = await ran(copy.id, { continue: true });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
  }

  await ran("t", { input: "Ask." });
  await expect(client.start("t", { continue: true })).rejects.toMatchObject({ status: 400 });
});

test("a failure keeps the text; a successful retry keeps nothing of the first attempt", async () => {
  const fail = { code: "model_overloaded" };
  const { url } = await startServer({
    agents: "agents:\n  assistant:\n    model: scripted:test\n    hooks: { retry: { base_ms: 1 } }\n",
    script: [{ say: "Half of", fail }, { say: "Whole." }, { say: "Half", fail: { code: "model_rejected" } }],
  });
  const client = createClient({ baseUrl: url });
  for (const input of ["one", "two"]) {
    const { id } = await client.start("t", { input });
    for await (const _ of client.runs.events("t", id));
  }
  const { items } = await client.threads.messages("t");
  expect(items.map(({ content }) => content)).toEqual(["one", "Whole.", "two", "Half"]);
  expect(items.at(-1)).toMatchObject({ incomplete: "failed" });
  expect(items[1]).not.toHaveProperty("incomplete");
});
