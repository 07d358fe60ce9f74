// Agents whose model's provider searches the web itself. The provider refuses blocks that come back changed, elsewhere or not at all.

import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import { createModel } from "../../src/agent/models/index.ts";
import { createClient } from "../../src/client/client.ts";
import { openThread } from "../../src/client/thread.ts";
import type { Message } from "../../src/protocol/message.ts";
import { anthropicFault } from "../support/fake-provider/anthropic-strict.ts";
import { type Answer, call, cited, rawCall, say, search, think } from "../support/fake-provider/script.ts";
import { blocksOf, sentBody } from "../support/fake-provider/sent-body.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { postJson } from "../support/native.ts";
import { type ServerOptions, startServer, temporaryFolder } from "../support/server.ts";

let provider: FakeProvider;
beforeEach(async () => {
  provider = await startFakeProvider();
});
afterEach(async () => {
  const refused = provider.requests().filter(({ status }) => status === 400);
  expect(refused.map((asked) => anthropicFault({ ...asked, text: "" }))).toEqual([]);
  await provider.close();
});

const WOOL = { url: "https://wool.example/", title: "Wool" };
const YARN = { url: "https://yarn.example/", title: "Yarn" };
const ANSWER: Answer = {
  blocks: [
    think("The user asks about wool."),
    say("Let me search. "),
    ...search("wool", [WOOL, YARN]),
    say("I found this: "),
    cited("Wool comes from sheep", WOOL),
    say(", says a page."),
  ],
};

const claude = (more = "") =>
  `{ provider: anthropic, model: claude-sonnet-4-5, base_url: "${provider.url}", api_key: k, searches: true${more} }`;

interface World extends ServerOptions {
  readonly agent?: string;
  readonly search?: object;
  readonly chosen?: string;
  readonly model?: never;
}

async function serve({
  agent = "",
  search: more = {},
  chosen: tools = "web_search, save",
  config,
  ...options
}: World = {}) {
  const agents = `
models:
  small: ${claude().replace("claude-sonnet-4-5", "claude-haiku-4-5")}
  other: { provider: openai, model: gpt-5-mini, base_url: "${provider.url}/v1", api_key: k }
agents:
  assistant:
    model: ${claude()}
    tools: [${tools}]
    ${agent}
`;
  const server = await startServer({
    ...{ realModels: true, agents, tools: [save] },
    config: { web: { search: { provider: "model", ...more } }, ...config },
    ...options,
  });
  const client = createClient({ baseUrl: server.url });
  const run = async (input: string, more: object = {}) => {
    const begun = await client.start("t", { input, ...more });
    for await (const _ of client.runs.events("t", begun.id));
    return client.runs.get("t", begun.id);
  };
  const messages = async () => (await client.threads.messages("t")).items as Message[];
  const answer = async () => {
    const found = (await messages()).findLast(({ role }) => role === "assistant");
    if (found?.role !== "assistant") throw new Error("no answer");
    return found;
  };
  return { ...server, client, run, messages, answer };
}

const save = defineTool({
  ...{ name: "save", description: "Saves.", parameters: z.object({}) },
  annotations: { requiresPermission: false },
  execute: async () => "saved",
});

/** The types of the blocks of the last request's message of that number. */
const sentTypes = (index: number) =>
  blocksOf(sentBody(provider.requests().at(-1)).messages[index] ?? {}).map(({ type }) => type);

const SEARCHED = ["text", "server_tool_use", "web_search_tool_result", "text", "text", "text"];

test("an answer keeps its pages, the parts that come from them, and the number of searches", async () => {
  provider.enqueue(ANSWER);
  const { run, answer } = await serve({ search: { max_uses: 3, blocked_domains: ["bad.example"] } });
  expect(await run("What is wool?")).toMatchObject({ status: "success", usage: { web_searches: 1 } });
  const { content, sources, citations, usage } = await answer();
  expect(content).toBe("Let me search. I found this: Wool comes from sheep, says a page.");
  expect(sources).toEqual([WOOL, YARN]);
  expect(
    citations?.map(({ start_index, end_index, ...page }) => [content.slice(start_index, end_index), page]),
  ).toEqual([["Wool comes from sheep", WOOL]]);
  expect(usage).toMatchObject({ web_searches: 1 });
  const { tools } = sentBody(provider.requests()[0]);
  expect(tools?.find(({ name }) => name === "web_search")).toEqual({
    ...{ type: "web_search_20250305", name: "web_search", max_uses: 3, blocked_domains: ["bad.example"] },
  });
});

describe("its blocks go back to the provider as they were, in their places", () => {
  test("in the next run, and after a restart", async () => {
    const dir = await temporaryFolder();
    provider.enqueue(ANSWER);
    const first = await serve({ dir, config: { store: "sqlite" } });
    await first.run("What is wool?");
    await first.run("And yarn?");
    expect(sentTypes(1)).toEqual(SEARCHED);
    await first.app.close();
    const second = await serve({ dir, config: { store: "sqlite" } });
    await second.run("And silk?");
    expect(sentTypes(1)).toEqual(SEARCHED);
  });

  test("around calls of tools, with the thoughts of the turn", async () => {
    provider.enqueue({ blocks: [...(ANSWER.blocks ?? []), call("save"), call("save")] });
    const { run } = await serve({ agent: "" });
    await run("What is wool?");
    expect(sentTypes(1)).toEqual(["thinking", ...SEARCHED, "tool_use", "tool_use"]);
  });

  test("where the provider made a search only after the calls beside it", async () => {
    const [asked, found] = search("wool", [WOOL]);
    provider.enqueue(
      { blocks: [say("Both."), asked, call("save")] },
      { blocks: [found, cited("Of sheep.", WOOL)] },
    );
    const { run, answer } = await serve();
    expect(await run("What is wool?")).toMatchObject({ status: "success", usage: { web_searches: 1 } });
    expect(sentTypes(1)).toEqual(["text", "server_tool_use", "tool_use"]);
    expect(await answer()).toMatchObject({ content: "Of sheep.", sources: [WOOL] });
    await run("And yarn?");
    expect([sentTypes(1), sentTypes(3)]).toEqual([
      ["text", "server_tool_use", "tool_use"],
      ["web_search_tool_result", "text"],
    ]);
  });

  test("in a branch, and in a thread whose later message was edited", async () => {
    provider.enqueue(ANSWER);
    const { run, client, messages } = await serve();
    await run("What is wool?");
    await run("And yarn?");
    const [, , edited] = await messages();
    await run("And silk?", { replaces: edited?.id });
    expect(sentTypes(1)).toEqual(SEARCHED);
    const fork = await client.threads.fork("t", {});
    const begun = await client.start(fork.id, { input: "And now?" });
    for await (const _ of client.runs.events(fork.id, begun.id));
    expect(sentTypes(1)).toEqual(SEARCHED);
  });

  test("in long threads, whose closed turns are written once", async () => {
    provider.enqueue(ANSWER);
    const { run } = await serve();
    await run("What is wool?");
    for (let n = 0; n < 34; n++) await run(`question ${n}`);
    expect(sentTypes(1)).toEqual(SEARCHED);
    expect(sentTypes(67)).toEqual(["text"]);
  });

  test("to another model of the provider, and not to another provider", async () => {
    provider.enqueue(ANSWER);
    const { run } = await serve();
    await run("What is wool?");
    await run("And yarn?", { model: "small" });
    expect(sentTypes(1)).toEqual(SEARCHED);
    await run("And silk?", { model: "other" });
    const { messages, tools } = sentBody(provider.requests().at(-1));
    expect(JSON.stringify(messages)).not.toContain("encrypted");
    expect(JSON.stringify(messages)).toContain("Wool comes from sheep");
    expect(tools?.map((tool) => tool.function?.name)).toEqual(["save", "write_todos"]);
  });
});

test("a paused answer continues as one message, and its usage counts once", async () => {
  const [asked, found] = search("wool", [WOOL]);
  provider.enqueue(
    {
      blocks: [say("Let me search. "), ...search("sheep", [YARN]), asked],
      stop: "pause_turn",
      usage: { input: 100, output: 10 },
    },
    { blocks: [found, cited("Wool comes from sheep.", WOOL)], usage: { input: 200, output: 20 } },
  );
  const { run, answer } = await serve({ search: { max_uses: 2 } });
  expect(await run("What is wool?")).toMatchObject({
    status: "success",
    usage: { input_tokens: 300, output_tokens: 30, web_searches: 2 },
  });
  const { content, sources, citations } = await answer();
  expect(content).toBe("Let me search. Wool comes from sheep.");
  expect(sources).toEqual([YARN, WOOL]);
  expect(citations).toEqual([{ start_index: 15, end_index: 37, ...WOOL }]);
  expect(sentBody(provider.requests()[1]).tools?.find(({ name }) => name === "web_search")).toMatchObject({
    max_uses: 1,
  });
  await run("And yarn?");
  expect(sentTypes(1)).toEqual([
    "text",
    ...["server_tool_use", "web_search_tool_result"],
    ...["server_tool_use", "web_search_tool_result"],
    "text",
  ]);
});

test("a paused answer with calls waits for their results, and continues with them", async () => {
  const [asked, found] = search("wool", [WOOL]);
  provider.enqueue(
    { blocks: [say("Both."), asked, call("save")], stop: "pause_turn" },
    { blocks: [found, cited("Of sheep.", WOOL)] },
  );
  const { run, answer } = await serve();
  expect(await run("What is wool?")).toMatchObject({ status: "success", stop_reason: "end_turn" });
  expect(await answer()).toMatchObject({ content: "Of sheep.", sources: [WOOL] });
  expect(sentTypes(1)).toEqual(["text", "server_tool_use", "tool_use"]);
});

describe("the parts of a paused answer have together the limits of one answer", () => {
  const pages = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => ({ url: `https://wool.example/${from + n}`, title: "Wool" }));
  const parts = (count: number, blocks: (part: number) => Answer["blocks"] & {}) =>
    Array.from({ length: count }, (_, part): Answer => {
      const isLast = part === count - 1;
      return { blocks: blocks(part), ...(isLast ? {} : { stop: "pause_turn" }) };
    });

  test("200 pages", async () => {
    provider.enqueue(...parts(3, (part) => [say("Wool. "), ...search("wool", pages(90 * part, 90))]));
    const { run, answer } = await serve();
    await run("What is wool?");
    expect((await answer()).sources).toEqual(pages(0, 200));
  });

  test("1,000 citations", async () => {
    const found = pages(0, 400);
    provider.enqueue(...parts(3, (part) => [cited(`Part ${part}. `, ...found), ...search("wool", [])]));
    const { run, answer } = await serve();
    await run("What is wool?");
    const { citations = [] } = await answer();
    expect(citations.map(({ start_index, url }) => [start_index, url])).toEqual(
      [0, 1, 2].flatMap((part) => found.map(({ url }) => [8 * part, url])).slice(0, 1000),
    );
  });

  test("8 Mi characters", async () => {
    const long = say(`${"m".repeat(1024 * 1024 - 1)} `.repeat(5));
    provider.enqueue(...parts(3, () => [long, ...search("wool", [WOOL])]));
    const { run } = await serve({ agent: "hooks: { retry: { attempts: 1 } }" });
    expect(await run("What is wool?")).toMatchObject({
      status: "error",
      error: { message: expect.stringContaining("the reply is longer than 8388608 characters") },
      usage: { web_searches: 1 },
    });
    expect(provider.requests()).toHaveLength(2);
  });
});

test("an answer with a schema is the provider's last call, and its search goes back before it", async () => {
  provider.enqueue({ blocks: [...(ANSWER.blocks ?? []), rawCall("final_answer", '{"from":"sheep"}')] });
  const { run, answer } = await serve();
  const output_schema = {
    type: "object",
    properties: { from: { type: "string" } },
    required: ["from"],
  };
  expect(await run("What is wool?", { output_schema })).toMatchObject({ output: { from: "sheep" } });
  const said = await answer();
  expect(said).toMatchObject({ content: '{"from":"sheep"}', sources: [WOOL, YARN] });
  expect(said).not.toHaveProperty("citations");
  expect(sentBody(provider.requests()[0])).not.toHaveProperty("output_config");
});

test("a provider that keeps pausing ends, as an answer that reached a limit", async () => {
  const paused: Answer = { blocks: [...search("wool", [WOOL])], stop: "pause_turn" };
  provider.enqueue(...Array.from({ length: 30 }, () => paused));
  const { run } = await serve();
  expect(await run("What is wool?")).toMatchObject({ status: "success", stop_reason: "max_tokens" });
  expect(provider.requests()).toHaveLength(11);
});

test.each([1, 2])(
  "an answer makes at most max_uses searches, however often it pauses: %d",
  async (max_uses) => {
    const [asked, found] = search("silk", [YARN]);
    provider.enqueue({
      blocks: [say("Let me search. "), ...search("wool", [WOOL]), asked],
      stop: "pause_turn",
    });
    if (max_uses > 1) provider.enqueue({ blocks: [found, search("linen", [])[0]], stop: "pause_turn" });
    const { run, answer } = await serve({ search: { max_uses } });
    expect(await run("What is wool?")).toMatchObject({
      ...{ status: "success", stop_reason: "max_tokens", usage: { web_searches: max_uses } },
    });
    expect(provider.requests()).toHaveLength(max_uses);
    expect(await answer()).toMatchObject({ content: "Let me search. " });
    expect(await run("And yarn?")).toMatchObject({ status: "success", stop_reason: "end_turn" });
  },
);

test("the address and the title of a page are safe to show, and go back as they were", async () => {
  const page = {
    url: "HTTPS://Wool.Example/a b/../c",
    title: "\u202eWo\u200bol\u0007\nand\u2066 sheep \u0645\u06cc\u200c\u0634\u0648\u062f ",
  };
  const shown = {
    url: "https://wool.example/c",
    title: "Wool and sheep \u0645\u06cc\u200c\u0634\u0648\u062f",
  };
  provider.enqueue({ blocks: [...search("wool", [page]), cited("Of sheep.", page)] });
  const { run, answer } = await serve();
  await run("What is wool?");
  const { sources, citations } = await answer();
  expect(sources).toEqual([shown]);
  expect(citations).toMatchObject([shown]);
  await run("And yarn?");
  const [, found, text] = blocksOf(sentBody(provider.requests().at(-1)).messages[1] ?? {});
  expect(found).toMatchObject({ content: [page] });
  expect(text).toMatchObject({ citations: [page] });
});

test("a search that failed does not fail the run, and is not counted", async () => {
  provider.enqueue({ blocks: [...search("wool", { error: "unavailable" }), say("I could not search.")] });
  const { run, answer } = await serve();
  const { status, usage } = await run("What is wool?");
  expect(status).toBe("success");
  expect(usage).not.toHaveProperty("web_searches");
  expect(await answer()).not.toHaveProperty("sources");
  await run("And yarn?");
  expect(sentTypes(1)).toEqual(["server_tool_use", "web_search_tool_result", "text"]);
});

test("a search without a result, where an answer reached its limit, does not go back", async () => {
  const [asked] = search("wool", []);
  provider.enqueue({ blocks: [say("Let me search."), asked], stop: "max_tokens" });
  const { run } = await serve();
  await run("What is wool?");
  expect((await run("Continue.")).status).toBe("success");
  expect(sentTypes(1)).toEqual(["text"]);
});

test("searches have a price, and count in the budget", async () => {
  provider.enqueue(ANSWER);
  const prices = { "*": { input: 1, output: 1, web_search: 10 } };
  const { run, url } = await serve({ config: { quotas: { user: { cost_per_day: 0.005 }, prices } } });
  const { usage } = await run("What is wool?");
  expect(usage.cost).toBe(10_000 + 15);
  const report = (await (await fetch(`${url}/usage`)).json()) as { items: { cost: number }[] };
  expect(report.items[0]?.cost).toBe(10_015);
  await expect(run("And yarn?")).rejects.toThrow("Your limit `cost_per_day`, 0.005, is reached.");
});

test("a call makes only as many searches as the budget pays, and is offered none at the end", async () => {
  const prices = { "*": { input: 0, output: 0, web_search: 10 } };
  const quotas = { user: { cost_per_day: 0.025 }, prices };
  provider.enqueue(ANSWER, { blocks: [...search("yarn", [YARN]), say("Of wool.")] });
  const { run } = await serve({ search: { max_uses: 5 }, config: { quotas } });
  for (const input of ["What is wool?", "What is yarn?", "And silk?"])
    expect(await run(input)).toMatchObject({ status: "success" });
  const offered = provider
    .requests()
    .map((request) => sentBody(request).tools?.find(({ name }) => name === "web_search")?.max_uses);
  expect(offered).toEqual([2, 1, undefined]);
});

describe("front ends show", () => {
  test("the pages, in a thread's answer", async () => {
    provider.enqueue(ANSWER);
    const { client, run } = await serve();
    await run("What is wool?");
    const thread = openThread(client, "t");
    const shown = await new Promise<readonly object[]>((resolve) => {
      const stop = thread.subscribe(() => {
        const { state, cells } = thread.getSnapshot();
        if (state === "ready") resolve(cells);
      });
      onTestFinished(stop);
    });
    expect(shown).toContainEqual(expect.objectContaining({ kind: "text", sources: [WOOL, YARN] }));
  });

  test("the pages, as parts of the AI SDK, in the stream and later", async () => {
    provider.enqueue(ANSWER);
    const { url } = await serve();
    const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text: "What is wool?" }] }];
    const stream = await postJson(`${url}/ai-sdk/assistant/chat`, { id: "t", messages });
    const parts = (text: string) =>
      text.match(/"type":"source-url","sourceId":"[^"]*","url":"https:\/\/wool/g);
    expect(parts(await stream.text())).toHaveLength(1);
    const later = await fetch(`${url}/ai-sdk/assistant/chat/t/messages`);
    expect(parts(await later.text())).toHaveLength(1);
  });

  describe("the parts that come from pages, as citations of OpenAI, in the stream and later", () => {
    const citation = { type: "url_citation", ...WOOL };

    test.each([
      ["of a search for the answer", [], { ...citation, start_index: 29, end_index: 50 }],
      [
        "of an earlier search",
        [{ blocks: [cited("Of sheep", WOOL)] }],
        { ...citation, start_index: 0, end_index: 8 },
      ],
    ])("%s", async (_, answers, expected) => {
      provider.enqueue(ANSWER, ...answers);
      const { url } = await serve();
      const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused" });
      const ask = (more: object) => openai.responses.create({ model: "assistant", input: "Wool?", ...more });
      const first = answers.length > 0 ? await ask({}) : undefined;
      const events = await openai.responses.create({
        ...{ model: "assistant", input: "What is wool?", stream: true },
        ...(first ? { previous_response_id: first.id } : {}),
      });
      const annotated: unknown[] = [];
      let last: OpenAI.Responses.Response | undefined;
      for await (const event of events) {
        if (event.type === "response.output_text.annotation.added") annotated.push(event.annotation);
        if (event.type === "response.completed") last = event.response;
      }
      expect(annotated).toEqual([expected]);
      const { data } = await openai.conversations.items.list(last?.conversation?.id ?? "");
      const said = [
        ...(last?.output ?? []),
        ...data.filter(({ id }) => last?.output.some((item) => item.id === id)),
      ];
      const texts = said.flatMap((item) => (item.type === "message" ? item.content : []));
      expect(texts).toMatchObject([{ annotations: [expected] }, { annotations: [expected] }]);
    });
  });
});

describe("an agent is offered the search", () => {
  const offered = async (world: World) => {
    const { run } = await serve(world);
    await run("go");
    return sentBody(provider.requests().at(-1)).tools?.some(({ name }) => name === "web_search") ?? false;
  };

  test.each([
    ["without permissions", "", true],
    ["if a rule allows it", "permissions: { rules: [{ allow: web_search }] }", true],
    ["not if a rule denies it", 'permissions: { mode: bypass, rules: [{ deny: "web_*" }] }', false],
    ["not if a rule asks about it", "permissions: { mode: bypass, rules: [{ ask: web_search }] }", false],
    [
      "not if a rule denies some queries",
      "permissions: { mode: bypass, rules: [{ deny: web_search, regex: secret }] }",
      false,
    ],
    ["not if the mode would ask", "permissions: {}", false],
  ])("%s", async (_, agent, expected) => {
    expect(await offered({ agent })).toBe(expected);
  });

  test.each([
    ["web_*", true],
    ["save", false],
  ])("if its tools are %s: %s", async (chosen, expected) => {
    expect(await offered({ chosen: JSON.stringify(chosen) })).toBe(expected);
  });
});

describe("flow rules", () => {
  const flow = (rule: string) => `permissions: { mode: bypass, flow: [${rule}] }`;

  test("a search counts as a reading of web_search", async () => {
    provider.enqueue({ blocks: [...(ANSWER.blocks ?? []), call("save")] });
    const { run } = await serve({ agent: flow("{ after: [web_search], ask: [save] }") });
    expect(await run("go")).toMatchObject({ status: "interrupted" });
  });

  test("a failed search does not", async () => {
    provider.enqueue({ blocks: [...search("wool", { error: "unavailable" }), call("save")] });
    const { run } = await serve({ agent: flow("{ after: [web_search], ask: [save] }") });
    expect(await run("go")).toMatchObject({ status: "success" });
  });

  test("a rule about web_search takes it away after a reading", async () => {
    provider.enqueue({ blocks: [call("save")] });
    const { run } = await serve({ agent: flow("{ after: [save], ask: [web_search] }") });
    await run("go");
    const names = provider.requests().map((request) => sentBody(request).tools?.map(({ name }) => name));
    expect(names[0]).toContain("web_search");
    expect(names[1]).not.toContain("web_search");
  });

  test("they bind a subagent without permissions of its own", async () => {
    provider.enqueue(
      { blocks: [call("save"), call("save")] },
      { blocks: [call("task", { agent: "helper", task: "Search for wool.", context: "" })] },
    );
    const { run } = await serve({
      agent: `
    subagents: [helper]
    ${flow("{ after: [save], deny: [web_search] }")}
  helper:
    model: ${claude()}
    tools: [web_search]`,
    });
    await run("go");
    const named = provider
      .requests()
      .map((request) => (sentBody(request).tools ?? []).map(({ name = "" }) => name));
    const ofHelper = named.filter((names) => names.includes("task_complete"));
    expect(ofHelper.length).toBeGreaterThan(0);
    expect(ofHelper.flat()).not.toContain("web_search");
  });

  describe("an answer whose rest the provider does not send after a pause counts too", () => {
    const paused: Answer = {
      blocks: [say("Let me search. "), ...search("sheep", [YARN]), search("wool", [])[0]],
      ...{ stop: "pause_turn", usage: { input: 100, output: 1000 } },
    };
    const usage = { input_tokens: 100, output_tokens: 1000, web_searches: 1 };
    const agent = `${flow("{ after: [web_search], ask: [save] }")}
    hooks: { retry: { attempts: 1 } }`;

    test.each(["overloaded", "rate_limit"] as const)("%s", async (fail) => {
      provider.enqueue(paused, { fail });
      const { run, answer } = await serve({ agent });
      expect(await run("go")).toMatchObject({ status: "error", usage });
      expect(await answer()).toMatchObject({ incomplete: "failed", sources: [], usage });
      provider.enqueue({ blocks: [call("save")] });
      expect(await run("go")).toMatchObject({ status: "interrupted" });
    });

    test("stopped", async () => {
      provider.enqueue(paused, { hang: true });
      const { client, run, answer } = await serve({ agent });
      const begun = await client.start("t", { input: "go" });
      await provider.request(1);
      await client.stop("t", begun.id);
      for await (const _ of client.runs.events("t", begun.id));
      expect(await client.runs.get("t", begun.id)).toMatchObject({ status: "cancelled", usage });
      expect(await answer()).toMatchObject({ incomplete: "stopped", sources: [], usage });
      provider.enqueue({ blocks: [call("save")] });
      expect(await run("go")).toMatchObject({ status: "interrupted" });
    });
  });

  test("an answer that breaks off during a search counts too", async () => {
    const blocks = [say("Let me search for pages about wool."), search("wool", [])[0]];
    provider.enqueue({ blocks, breakAfter: { frames: 12, with: "silence" } });
    const { client, answer } = await serve();
    const begun = await client.start("t", { input: "go" });
    for await (const { event, data } of client.runs.events("t", begun.id))
      if (event === "on_chat_model_stream" && "delta" in data && data.delta.includes("wool"))
        await client.stop("t", begun.id);
    expect(await answer()).toMatchObject({ incomplete: "stopped", sources: [], usage: { estimated: true } });
  });

  test("an answer that breaks off after a search counts too", async () => {
    provider.enqueue({ ...ANSWER, breakAfter: { frames: 26, with: "silence" } });
    const { client, run, answer } = await serve({ agent: flow("{ after: [web_search], ask: [save] }") });
    const begun = await client.start("t", { input: "go" });
    let text = "";
    for await (const { event, data } of client.runs.events("t", begun.id)) {
      if (event === "on_chat_model_stream" && "delta" in data) text += data.delta;
      if (text.includes("found")) {
        text = "";
        await client.stop("t", begun.id);
      }
    }
    expect(await answer()).toMatchObject({ incomplete: "stopped", sources: [] });
    provider.enqueue({ blocks: [call("save")] });
    expect(await run("go")).toMatchObject({ status: "interrupted" });
  });
});

test.each(["openai:gpt-5-mini", "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", "scripted:demo"])(
  "an agent whose model has no search of its own does not load, with the reason: %s",
  async (model) => {
    const agents = `agents: { assistant: { model: "${model}", tools: [web_search] } }`;
    await expect(serve({ agents })).rejects.toThrow(`\`${model}\` has no search of its own`);
    const chosen = `agents: { assistant: { model: "${model}", tools: ["web_*"] } }`;
    const { url } = await serve({ agents: chosen });
    expect(await (await fetch(`${url}/health`)).text()).toContain("ok");
  },
);

test("Claude has the search at Anthropic and on Vertex AI, and at a gateway only if its operator says so", () => {
  const env = { GOOGLE_CLOUD_PROJECT: "acme" };
  const [model, base_url] = ["claude-sonnet-4-5", "https://anthropic.com.gateway.example"];
  expect(createModel("anthropic:claude-sonnet-4-5", env).searches).toBe(true);
  expect(createModel({ provider: "anthropic", model, base_url }, env).searches).toBeUndefined();
  expect(createModel({ provider: "anthropic", model, base_url, searches: true }, env).searches).toBe(true);
  expect(createModel("vertex:claude-sonnet-4-5@20250929", env).searches).toBe(true);
  expect(createModel("vertex:gemini-2.5-flash", env).searches).toBeUndefined();
});

test.each([
  { provider: "bedrock", model: "us.anthropic.claude-sonnet-4-5-20250929-v1:0" },
  { provider: "bedrock", model: "openai.gpt-oss-120b-1:0" },
  { provider: "vertex", model: "gemini-2.5-flash" },
  { provider: "scripted", model: "demo" },
])("a model that cannot search is refused where its operator says that it can: $provider:$model", (model) => {
  expect(() => createModel({ ...model, searches: true }, {})).toThrow(
    `\`${model.provider}:${model.model}\` has no search of its own, so \`searches: true\` does not apply to it.`,
  );
});
