// OpenAI's own SDK against the whole server.

import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { textOf } from "../../../src/agent/core/message.ts";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { postJson, saidIn, statusesOf, threadsOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { AGENTS } from "../agents.ts";

async function started(script: readonly Turn[] | Script) {
  const { url, app } = await startServer({ script, agents: AGENTS });
  const clientFor = (conversation?: string) =>
    new OpenAI({
      baseURL: `${url}/v1`,
      apiKey: "unused",
      ...(conversation ? { defaultHeaders: { "X-Conversation-Id": conversation } } : {}),
    });
  return { url, app, clientFor, client: clientFor() };
}

const MODEL = "assistant";
const user = (content: string) => ({ role: "user", content }) as const;
const assistant = (content: string) => ({ role: "assistant", content }) as const;
const contentOf = ({ choices }: OpenAI.ChatCompletion) => choices[0]?.message.content;

describe("a chat client", () => {
  test("lists the agents as models", async () => {
    const { client } = await started([]);
    const { data } = await client.models.list();
    expect(data).toMatchObject(
      ["assistant", "writer"].map((id) => ({ id, object: "model", owned_by: "skein" })),
    );
    expect(await client.models.retrieve("assistant")).toMatchObject({ id: "assistant" });
    await expect(client.models.retrieve("gpt-4")).rejects.toMatchObject({
      status: 404,
      code: "model_not_found",
    });
  });

  test("receives an answer in pieces, with separate reasoning and usage", async () => {
    const { client } = await started([{ think: "Hm.", say: "You said {{user}} to me." }]);
    const stream = client.chat.completions.stream({
      model: MODEL,
      messages: [user("hello")],
      stream_options: { include_usage: true },
    });
    let pieces = 0;
    stream.on("content", () => pieces++);
    let thoughts = "";
    stream.on("chunk", ({ choices: [choice] }) => {
      thoughts += (choice?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? "";
    });
    const completion = await stream.finalChatCompletion();
    expect(contentOf(completion)).toBe("You said hello to me.");
    expect(pieces).toBeGreaterThan(3);
    expect(thoughts).toBe("Hm.");
    expect(completion.choices[0]?.finish_reason).toBe("stop");
    expect(completion.usage?.completion_tokens).toBeGreaterThan(0);
  });

  test("receives a whole answer", async () => {
    const { client } = await started([{ say: "Hello." }]);
    const completion = await client.chat.completions.create({ model: MODEL, messages: [user("hi")] });
    expect(completion).toMatchObject({ object: "chat.completion", model: MODEL });
    expect(contentOf(completion)).toBe("Hello.");
  });

  test("without a conversation's name sends its history, and leaves no thread behind", async () => {
    let read = "";
    const { url, client } = await started(({ messages, system }) => {
      read = JSON.stringify([system, messages]);
      return { say: "Ada." };
    });
    const messages = [
      { role: "system", content: "Be short." } as const,
      ...[user("I am Ada."), assistant("Hello Ada."), user("Who am I?")],
    ];
    expect(contentOf(await client.chat.completions.create({ model: MODEL, messages }))).toBe("Ada.");
    for (const text of ["Be short.", "I am Ada.", "Hello Ada.", "Who am I?"]) expect(read).toContain(text);
    await expect.poll(() => threadsOf(url)).toEqual([]);
  });

  test("without a conversation's name cannot be asked, so the call is denied", async () => {
    const { client } = await started([
      { call: [{ tool: "execute", args: { command: "echo hi" } }] },
      { say: "Not allowed, then." },
    ]);
    const completion = await client.chat.completions.create({ model: MODEL, messages: [user("run it")] });
    expect(contentOf(completion)).toBe("Not allowed, then.");
  });

  test("with a conversation's name continues one thread, and an edit replaces messages", async () => {
    const { url, clientFor } = await started([{ say: "A." }, { say: "B." }, { say: "C." }, { say: "D." }]);
    const chat = (...messages: OpenAI.ChatCompletionMessageParam[]) =>
      clientFor("c1").chat.completions.create({ model: MODEL, messages });
    await chat(user("first"));
    await chat(user("first"), assistant("A."), user("second"));
    expect(await saidIn(url, "c1")).toEqual(["first", "A.", "second", "B."]);
    await chat(user("first"), assistant("A."), user("second"));
    expect(await saidIn(url, "c1")).toEqual(["first", "A.", "second", "C."]);
    await chat(user("first"), assistant("A."), user("other"));
    expect(await saidIn(url, "c1")).toEqual(["first", "A.", "other", "D."]);
  });

  test.each([
    ["approve", "It ran."],
    ["No.", "As you like."],
  ])("answers an approval with text: %s", async (word, outcome) => {
    const script: Script = ({ messages }, call) => {
      if (call === 0) return { call: [{ tool: "execute", args: { command: "echo ran" } }] };
      return { say: JSON.stringify(messages.at(-1)).includes("ran\\n") ? "It ran." : "As you like." };
    };
    const { clientFor } = await started(script);
    const client = clientFor("c1");
    const asked = await client.chat.completions.create({ model: MODEL, messages: [user("run it")] });
    expect(contentOf(asked)).toContain("May it?");
    expect(contentOf(asked)).toContain("approve");
    const messages = [user("run it"), assistant(contentOf(asked) ?? ""), user(word)];
    expect(contentOf(await client.chat.completions.create({ model: MODEL, messages }))).toBe(outcome);
  });

  test("answers a question with text", async () => {
    const { clientFor } = await started([
      { call: [{ tool: "ask_user", args: { question: "Which?", options: ["red", "blue"] } }] },
      { say: "Blue it is." },
    ]);
    const client = clientFor("c1");
    const asked = await client.chat.completions.create({ model: MODEL, messages: [user("ask me")] });
    expect(contentOf(asked)).toContain("Which?");
    expect(contentOf(asked)).toContain("- red");
    const messages = [user("ask me"), assistant(contentOf(asked) ?? ""), user("Blue")];
    expect(contentOf(await client.chat.completions.create({ model: MODEL, messages }))).toBe("Blue it is.");
  });

  test("executes its own tool again if the new call has the id of an earlier one", async () => {
    const { clientFor } = await started(({ messages }) => {
      const last = messages.at(-1);
      return last?.role === "user"
        ? { call: [{ tool: "where", id: "call_where" }] }
        : { say: textOf(last?.content ?? "") };
    });
    const client = clientFor("c1");
    const tools = [{ type: "function" as const, function: { name: "where", parameters: {} } }];
    const messages: OpenAI.ChatCompletionMessageParam[] = [];
    for (const place of ["Vienna", "Graz"]) {
      messages.push(user("where am I?"));
      for (const tool of [undefined, { role: "tool" as const, tool_call_id: "call_where", content: place }]) {
        if (tool) messages.push(tool);
        const { choices } = await client.chat.completions.create({ model: MODEL, messages, tools });
        messages.push(choices[0]?.message ?? assistant(""));
      }
      expect(messages.at(-1)?.content).toBe(place);
    }
  });

  test.each([["c1"], [undefined]])("executes its own tool (conversation %s)", async (conversation) => {
    let read = "";
    const { url, clientFor } = await started(({ messages }, call) => {
      read = JSON.stringify(messages);
      return call === 0 ? { call: [{ tool: "where", id: "call_where" }] } : { say: "Vienna, then." };
    });
    const client = clientFor(conversation);
    const tools = [
      {
        type: "function",
        function: { name: "where", parameters: { type: "object", properties: {} } },
      } as const,
    ];
    const question = [user("where am I?")];
    const asked = await client.chat.completions.create({ model: MODEL, messages: question, tools });
    const call = asked.choices[0]?.message;
    expect(asked.choices[0]?.finish_reason).toBe("tool_calls");
    expect(call?.tool_calls).toMatchObject([{ id: "call_where", function: { name: "where" } }]);
    const completion = await client.chat.completions.create({
      model: MODEL,
      tools,
      messages: [
        ...question,
        call ?? assistant(""),
        { role: "tool", tool_call_id: "call_where", content: "Vienna" },
      ],
    });
    expect(contentOf(completion)).toBe("Vienna, then.");
    expect(read).toContain("Vienna");
    if (conversation === undefined) await expect.poll(() => threadsOf(url)).toEqual([]);
  });

  test("without a conversation's name answers and deletes no other thread of its user", async () => {
    const { url, client } = await started([
      { call: [{ tool: "where", id: "call_where" }] },
      { say: "A new one." },
    ]);
    const tool = { name: "where", description: "Where.", parameters: { type: "object" } };
    const native = await postJson(
      `${url}/threads/mine/runs`,
      { input: "where am I?", tools: [tool] },
      { accept: "application/json" },
    );
    expect(await native.json()).toMatchObject({ status: "interrupted" });
    const call = {
      id: "call_where",
      type: "function",
      function: { name: "where", arguments: "{}" },
    } as const;
    const completion = await client.chat.completions.create({
      model: MODEL,
      messages: [
        user("where am I?"),
        { role: "assistant", tool_calls: [call] },
        { role: "tool", tool_call_id: "call_where", content: "Vienna" },
      ],
    });
    expect(contentOf(completion)).toBe("A new one.");
    await expect.poll(() => threadsOf(url)).toMatchObject([{ id: "mine", status: "interrupted" }]);
  });

  test("without a conversation's name cannot be asked after its own tool either", async () => {
    const { url, client } = await started([
      { call: [{ tool: "where", id: "call_where" }] },
      { call: [{ tool: "execute", args: { command: "echo hi" } }] },
      { say: "Not allowed, then." },
    ]);
    const tools = [{ type: "function", function: { name: "where" } } as const];
    const asked = await client.chat.completions.create({ model: MODEL, messages: [user("go")], tools });
    const completion = await client.chat.completions.create({
      model: MODEL,
      tools,
      messages: [
        user("go"),
        asked.choices[0]?.message ?? assistant(""),
        { role: "tool", tool_call_id: "call_where", content: "Vienna" },
      ],
    });
    expect(contentOf(completion)).toBe("Not allowed, then.");
    await expect.poll(() => threadsOf(url)).toEqual([]);
  });

  test("is never asked to execute a tool of the server", async () => {
    const agents = AGENTS.replace("ask: execute, message: May it?", "allow: execute");
    const { url } = await startServer({
      agents,
      script: [
        { say: "Running.", call: [{ tool: "execute", args: { command: "echo hi" } }] },
        { say: "Done." },
      ],
    });
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused" });
    const completion = await client.chat.completions
      .stream({ model: MODEL, messages: [user("run it")] })
      .finalChatCompletion();
    expect(completion.choices[0]?.message.tool_calls).toBeUndefined();
    expect(contentOf(completion)).toBe("Running.\n\nDone.");
  });

  test("that leaves cancels the run", async () => {
    const { url, clientFor } = await started([{ say: "a ".repeat(1000), delay_ms: 20 }]);
    const stream = clientFor("c1").chat.completions.stream({ model: MODEL, messages: [user("go")] });
    for await (const _ of stream) break;
    await expect.poll(() => statusesOf(url, "c1")).toEqual(["cancelled"]);
  });

  test("receives the provider's error once, instead of half an answer", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const { client } = await started([
      { say: "Half", fail },
      { say: "Half", fail },
    ]);
    const streaming = client.chat.completions.stream({ model: MODEL, messages: [user("go")] });
    await expect(streaming.finalChatCompletion()).rejects.toThrow("The provider said no.");
    // Another request would find no turn in the script.
    await expect(
      client.chat.completions.create({ model: MODEL, messages: [user("go")] }),
    ).rejects.toMatchObject({
      status: 502,
      code: "model_rejected",
      message: "502 The provider said no.",
    });
  });

  test("sends images, and the model sees them", async () => {
    let seen: unknown;
    const { client } = await started(({ messages }) => {
      seen = messages.at(-1)?.content;
      return { say: "A dot." };
    });
    const data = Buffer.from("not really an image").toString("base64");
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } } as const;
    const content = [{ type: "text", text: "What is it?" } as const, image];
    await client.chat.completions.create({ model: MODEL, messages: [{ role: "user", content }] });
    expect(seen).toEqual([
      { type: "text", text: "What is it?" },
      { type: "image", media_type: "image/png", data },
    ]);
  });

  test.each([
    ["an image by its URL alone", [{ type: "image_url", image_url: "data:image/JPG;base64,iVBORw0KGgo=" }]],
    [
      "no words beside an image",
      [
        { type: "text", text: "" },
        { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
      ],
    ],
    ["null for what it leaves out", [{ type: "text", text: "hi", image_url: null, file: null }]],
  ])("can send %s", async (_, content) => {
    let seen: unknown;
    const { url } = await started(({ messages }) => {
      seen = messages.at(-1)?.content;
      return { say: "Seen." };
    });
    const tools = [{ type: "function", function: { name: "look", description: null, parameters: null } }];
    const body = { model: MODEL, tools, messages: [{ role: "user", content }] };
    expect((await postJson(`${url}/v1/chat/completions`, body)).status).toBe(200);
    expect(JSON.stringify(seen)).toMatch(/"image\/png"|"hi"/);
  });

  test("can send the arguments of a call as a map, and the agent's model sees which tool its result is from", async () => {
    let results: unknown;
    const { url } = await started(({ messages }) => {
      results = messages.filter(({ role }) => role === "tool");
      return { say: "ok" };
    });
    const call = { id: "c1", type: "function", function: { name: "look", arguments: { a: 1 } } };
    const messages = [
      user("one"),
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c1", content: null },
      user("two"),
    ];
    expect((await postJson(`${url}/v1/chat/completions`, { model: MODEL, messages })).status).toBe(200);
    expect(results).toMatchObject([{ tool_call_id: "c1", name: "look" }]);
  });

  test("does not run the agent for Open WebUI's side requests", async () => {
    const { url } = await started([]);
    const headers = { "X-OpenWebUI-Task": "title_generation" };
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", defaultHeaders: headers });
    const completion = await client.chat.completions.create({ model: MODEL, messages: [user("About cats")] });
    expect(JSON.parse(contentOf(completion) ?? "")).toEqual({ title: "About cats" });
    expect(await threadsOf(url)).toEqual([]);
  });

  test.each([
    ["alone", [user("three")]],
    ["with a system message", [{ role: "system", content: "Be short." } as const, user("three")]],
    ["with others", [user("x"), assistant("y"), user("three")]],
  ])("a message without the thread's earlier ones follows them: %s", async (_, messages) => {
    const { url, clientFor } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    const chat = (...sent: OpenAI.ChatCompletionMessageParam[]) =>
      clientFor("c1").chat.completions.create({ model: MODEL, messages: sent });
    await chat(user("one"));
    await chat(user("one"), assistant("A."), user("two"));
    await chat(...messages);
    expect(await saidIn(url, "c1")).toEqual(["one", "A.", "two", "B.", "three", "C."]);
  });

  test("a chat that began elsewhere brings its history, even if its name arrives late", async () => {
    const read: string[][] = [];
    const { url, client, clientFor } = await started(({ messages }) => {
      read.push(messages.map(({ content }) => String(content)));
      return { say: "Ada." };
    });
    const sent = [user("I am Ada."), assistant("Hello Ada."), user("Who am I?")];
    await client.chat.completions.create({ model: MODEL, messages: sent.slice(0, 1) });
    await clientFor("c1").chat.completions.create({ model: MODEL, messages: sent });
    const more = [...sent, assistant("Ada."), user("Sure?")];
    await clientFor("c1").chat.completions.create({ model: MODEL, messages: more });
    await clientFor("c1").chat.completions.create({ model: MODEL, messages: more });
    const texts = more.map(({ content }) => content);
    expect(read.slice(1)).toEqual([texts.slice(0, 3), texts, texts]);
    expect(await saidIn(url, "c1")).toEqual([...texts, "Ada."]);
  });

  test("a conversation's name that the front end has not filled in is ignored", async () => {
    const { url, clientFor } = await started([{ say: "A." }, { say: "B." }]);
    for (const name of ["{{CHAT_ID}}", "{{LIBRECHAT_BODY_CONVERSATIONID}}"])
      await clientFor(name).chat.completions.create({ model: MODEL, messages: [user("hi")] });
    await expect.poll(() => threadsOf(url)).toEqual([]);
    const task = { "X-OpenWebUI-Task": "{{TASK}}" };
    const filled = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", defaultHeaders: task });
    await expect(filled.chat.completions.create({ model: MODEL, messages: [user("hi")] })).rejects.toThrow(
      "no turn 3",
    );
  });

  test("a front end's side requests do not change the chat whose name they carry", async () => {
    const { url, clientFor } = await started([{ say: "A." }]);
    const chat = (...sent: OpenAI.ChatCompletionMessageParam[]) =>
      clientFor("c1").chat.completions.create({ model: MODEL, messages: sent });
    await chat(user("one"));
    await chat(user("### Task:\nGenerate a concise title.\n<chat_history>\nUSER: one\n</chat_history>"));
    await chat(
      user("Provide a concise, 5-word-or-less title for the conversation.\n\nConversation:\nUser: one"),
    );
    expect(await saidIn(url, "c1")).toEqual(["one", "A."]);
  });
});
