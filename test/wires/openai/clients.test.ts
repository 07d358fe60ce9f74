// Both of OpenAI's APIs as other clients use them: over connections that break, in front ends with headers of their own,
// in the Agents SDK, by several users at once.

import { Agent, OpenAIProvider, Runner, tool, user } from "@openai/agents";
import OpenAI from "openai";
import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { cuttingProxy } from "../../support/cutting-proxy.ts";
import { heldAfter } from "../../support/gate.ts";
import { asUser, BEHIND_GATEWAY } from "../../support/gateway.ts";
import { saidIn, threadsOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";

const AGENTS = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    tools: [ask_user, execute]
    permissions: { rules: [{ ask: execute, message: May it? }] }
`;
const model = "assistant";
const WORDS = Array.from({ length: 40 }, (_, index) => `word${index}`).join(" ");

const clientOf = (url: string, headers: Record<string, string> = {}) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", defaultHeaders: headers });
const started = async (script: readonly Turn[] | Script, config: object = {}) => {
  const { url, app } = await startServer({ script, agents: AGENTS, config });
  return { url, app, client: clientOf(url) };
};
const textIn = (events: readonly ResponseStreamEvent[]) =>
  events.flatMap((event) => (event.type === "response.output_text.delta" ? [event.delta] : [])).join("");

describe("a broken stream of responses", () => {
  /** Says nothing after the word at which `readUntilHarm` does its harm, until it is released. */
  const held = async () => {
    const { model, release } = heldAfter("word3", [{ say: WORDS }]);
    const { url, app } = await startServer({ model, agents: AGENTS });
    return { url, app, release, client: clientOf(url) };
  };
  /** Reads until a word of the middle, does `harm`, and reads on to the end, which is an error or a failed response. */
  const readUntilHarm = async (client: OpenAI, harm: () => unknown) => {
    const seen: ResponseStreamEvent[] = [];
    const request = { model, input: "go", background: true, stream: true } as const;
    let isHarmed = false;
    const reading = (async () => {
      for await (const event of await client.responses.create(request)) {
        seen.push(event);
        if (isHarmed || !textIn(seen).includes("word3")) continue;
        isHarmed = true;
        await harm();
      }
    })();
    const isCut = await reading.then(
      () => false,
      () => true,
    );
    expect(isCut || seen.at(-1)?.type === "response.failed").toBe(true);
    return seen;
  };

  test("is an error, and is resumed after the last event: all text once, one run", async () => {
    const { url, client, release } = await held();
    const proxy = await cuttingProxy(Number(new URL(url).port));
    onTestFinished(() => proxy.close());
    const seen = await readUntilHarm(clientOf(`http://127.0.0.1:${proxy.port}`), () => proxy.cutAll());
    release();
    const [first] = seen;
    const id = first?.type === "response.created" ? first.response.id : "";
    const starting_after = seen.at(-1)?.sequence_number ?? 0;
    for await (const event of await client.responses.retrieve(id, { stream: true, starting_after }))
      seen.push(event);
    expect(textIn(seen)).toBe(WORDS);
    expect(seen.map((each) => each.sequence_number)).toEqual(seen.map((_, index) => index));
    expect(await threadsOf(url)).toHaveLength(1);
  });

  test("is an error if the server shuts down, because half an answer is not the answer", async () => {
    const { client, app } = await held();
    const seen = await readUntilHarm(client, () => void app.close());
    expect(seen.map(({ type }) => type)).not.toContain("response.completed");
  });

  test("cannot be resumed once its events have expired, but the response can still be read", async () => {
    const { client } = await started([{ think: "Hm.", say: "Hello." }], { retention: { events: "1ms" } });
    const { id, output } = await client.responses.create({ model, input: "hi" });
    const resume = () => client.responses.retrieve(id, { stream: true, starting_after: 2 });
    const code = () =>
      resume().then(
        () => "none",
        (error: unknown) => (error instanceof OpenAI.APIError ? [error.status, error.code] : error),
      );
    await expect.poll(code).toEqual([404, "events_expired"]);
    expect(await client.responses.retrieve(id)).toMatchObject({ status: "completed", output });
    const replay = await client.responses.stream({ response_id: id }).finalResponse();
    expect(replay.output_text).toBe("Hello.");
    const forked = client.responses.create({ model, input: "on", previous_response_id: id });
    expect((await forked).status).toBe("failed"); // The script has no second turn, and the thread still continues.
  });
});

describe.each([
  ["Open WebUI", { "X-OpenWebUI-Chat-Id": "c1", "X-OpenWebUI-User-Name": "Ada" }],
  ["LibreChat", { "X-Conversation-Id": "c1", "X-User-ID": "ada" }],
])("%s", (_, headers) => {
  const user = (content: string) => ({ role: "user", content }) as const;
  const assistant = (content: string) => ({ role: "assistant", content }) as const;

  test.each([
    [
      "responses",
      async (client: OpenAI, input: OpenAI.ChatCompletionMessageParam[]) => {
        const instructions = "Be short.";
        await client.responses
          .stream({ model, input: input as OpenAI.Responses.EasyInputMessage[], instructions })
          .finalResponse();
      },
    ],
    [
      "chat completions",
      async (client: OpenAI, input: OpenAI.ChatCompletionMessageParam[]) => {
        const messages = [{ role: "system", content: "Be short." } as const, ...input];
        await client.chat.completions.stream({ model, messages }).finalContent();
      },
    ],
  ])("sends the whole chat with %s, as one thread; an edit replaces messages", async (_api, send) => {
    const { url } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    const client = clientOf(url, headers);
    await send(client, [user("first")]);
    await send(client, [user("first"), assistant("A."), user("second")]);
    expect(await saidIn(url, "c1")).toEqual(["Be short.", "first", "A.", "second", "B."]);
    await send(client, [user("first"), assistant("A."), user("other")]);
    expect(await saidIn(url, "c1")).toEqual(["Be short.", "first", "A.", "other", "C."]);
    expect(await threadsOf(url)).toHaveLength(1);
  });
});

test("Open WebUI's side requests run no agent over responses either", async () => {
  const { url } = await started([]);
  const client = clientOf(url, { "X-OpenWebUI-Task": "title_generation" });
  const { output_text } = await client.responses.create({ model, input: "About cats" });
  expect(JSON.parse(output_text)).toEqual({ title: "About cats" });
  expect(await threadsOf(url)).toEqual([]);
});

describe("the Agents SDK", () => {
  const runnerFor = (client: OpenAI) =>
    new Runner({
      modelProvider: new OpenAIProvider({ openAIClient: client, useResponses: true }),
      tracingDisabled: true,
    });
  const where = tool({
    name: "where",
    description: "Where the user is.",
    parameters: z.object({}),
    execute: () => "Vienna",
  });

  test.each([["streamed"], ["whole"]])("receives an answer, %s", async (how) => {
    const { client } = await started([{ think: "Hm.", say: "You said {{user}}." }]);
    const runner = runnerFor(client);
    const agent = new Agent({ name: "Front", model, instructions: "Be short." });
    if (how === "whole") {
      expect((await runner.run(agent, "hello")).finalOutput).toBe("You said hello.");
      return;
    }
    const result = await runner.run(agent, "hello", { stream: true });
    let text = "";
    for await (const piece of result.toTextStream()) text += piece;
    await result.completed;
    expect(text).toBe("You said hello.");
    expect(result.finalOutput).toBe("You said hello.");
  });

  test.each([["its whole history"], ["the id of the response before"], ["a conversation"]])(
    "executes its own tool, on one thread, sending %s",
    async (how) => {
      const { url, client } = await started(({ messages }, call) =>
        call === 0
          ? { call: [{ tool: "where", id: "call_where" }] }
          : { say: `You are in ${JSON.stringify(messages.at(-1)?.content)}.` },
      );
      const agent = new Agent({ name: "Front", model, instructions: "Be short.", tools: [where] });
      const first = how === "a conversation" ? await client.conversations.create() : undefined;
      const result = await runnerFor(client).run(agent, [user("where am I?")], {
        ...(first ? { conversationId: first.id } : {}),
        ...(how.includes("response") ? { autoPreviousResponseId: true } : {}),
      } as object);
      expect(result.finalOutput).toBe('You are in "Vienna".');
      expect(await threadsOf(url)).toHaveLength(1);
    },
  );
});

describe("another user", () => {
  test("finds no response and no conversation of a neighbour, and has separate threads of the same name", async () => {
    const { url } = await started(({ messages }) => ({ say: `${messages.length}` }), BEHIND_GATEWAY);
    const ada = clientOf(url, asUser("ada"));
    const bob = clientOf(url, asUser("bob"));
    const hers: Response = await ada.responses.create({ model, input: "a secret" });
    const conversation = hers.conversation?.id ?? "";
    for (const request of [
      () => bob.responses.retrieve(hers.id),
      () => bob.responses.retrieve(hers.id, { stream: true }),
      () => bob.responses.cancel(hers.id),
      () => bob.responses.delete(hers.id),
      () => bob.responses.inputItems.list(hers.id),
      () => bob.responses.create({ model, input: "and?", previous_response_id: hers.id }),
      () => bob.responses.create({ model, input: "and?", conversation }),
      () => bob.conversations.retrieve(conversation),
      () => bob.conversations.items.list(conversation),
      () => bob.conversations.delete(conversation),
    ])
      await expect(request()).rejects.toMatchObject({ status: 404 });
    for (const [name, words] of [
      ["ada", "1"],
      ["ada", "3"],
      ["bob", "1"],
    ] as const) {
      const named = clientOf(url, { ...asUser(name), "X-Conversation-Id": "shared" });
      const messages = [{ role: "user", content: `${words} of ${name}` } as const];
      const first = { role: "user", content: `1 of ${name}` } as const;
      const sent = words === "1" ? messages : [first, ...messages];
      const { choices } = await named.chat.completions.create({ model, messages: sent });
      expect(choices[0]?.message.content).toBe(words);
    }
  });
});
