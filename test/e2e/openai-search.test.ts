// Agents whose model is one of OpenAI's search models, which search in every answer, or a model behind a gateway that can search.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import { createModel } from "../../src/agent/models/index.ts";
import { createClient } from "../../src/client/client.ts";
import type { Message } from "../../src/protocol/message.ts";
import { openaiFault } from "../support/fake-provider/openai-strict.ts";
import { type Answer, call, cited, say } from "../support/fake-provider/script.ts";
import { sentBody } from "../support/fake-provider/sent-body.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { startServer } from "../support/server.ts";

let provider: FakeProvider;
beforeEach(async () => {
  provider = await startFakeProvider();
});
afterEach(async () => {
  const refused = provider.requests().filter(({ status }) => status === 400);
  expect(refused.map((asked) => openaiFault({ ...asked, text: "" }))).toEqual([]);
  await provider.close();
});

const WOOL = { url: "https://wool.example/?utm_source=openai", title: "Wool" };
const ANSWER: Answer = {
  blocks: [
    say("🐑 Wool comes from sheep "),
    cited(`([wool.example](${WOOL.url}))`, WOOL),
    say(", 🐑 says a page."),
  ],
};

interface World {
  readonly model?: string;
  readonly more?: string;
  readonly tools?: string;
  readonly models?: string;
  readonly agent?: string;
  readonly search?: object;
  readonly config?: object;
}

const modelOf = (model: string, more = "") =>
  `{ provider: openai, model: ${model}, base_url: "${provider.url}/v1", api_key: k${more} }`;

async function serve({
  model = "gpt-5-search-api",
  more,
  tools = "web_search, save",
  models = `search: ${modelOf("gpt-4o-search-preview")}`,
  agent = "",
  search = {},
  config = {},
}: World = {}) {
  const agents = `
models: { ${models} }
agents:
  assistant:
    model: ${modelOf(model, more)}
    tools: [${tools}]
    ${agent}
`;
  const server = await startServer({
    ...{ realModels: true, agents, tools: [save] },
    config: { web: { search: { provider: "model", ...search } }, ...config },
  });
  const client = createClient({ baseUrl: server.url });
  const run = async (input: string, options: object = {}) => {
    const begun = await client.start("t", { input, ...options });
    for await (const _ of client.runs.events("t", begun.id));
    return client.runs.get("t", begun.id);
  };
  const answer = async () => {
    const messages = (await client.threads.messages("t")).items as Message[];
    const found = messages.findLast(({ role }) => role === "assistant");
    if (found?.role !== "assistant") throw new Error("no answer");
    return found;
  };
  return { ...server, client, run, answer };
}

const save = defineTool({
  ...{ name: "save", description: "Saves.", parameters: z.object({}) },
  annotations: { requiresPermission: false },
  execute: async () => "saved",
});

const sent = () => sentBody(provider.requests().at(-1));
const toolsSent = () => sent().tools?.map((tool) => tool.function?.name);

describe("an answer of a search model", () => {
  test("keeps its pages, the parts that come from them, and its search", async () => {
    provider.enqueue(ANSWER);
    const { run, answer } = await serve();
    expect(await run("What is wool?")).toMatchObject({ status: "success", usage: { web_searches: 1 } });
    const { content, sources, citations = [] } = await answer();
    expect(sources).toEqual([WOOL]);
    expect(citations.map(({ start_index, end_index }) => content.slice(start_index, end_index))).toEqual([
      `([wool.example](${WOOL.url}))`,
    ]);
    expect(citations).toMatchObject([WOOL]);
    expect(sent()).toMatchObject({ web_search_options: {} });
    expect(toolsSent()).toEqual(["save", "write_todos"]);
  });

  test("has a price, also without a page and without the tool", async () => {
    const prices = { "*": { input: 1, output: 1, web_search: 10 } };
    const { run, answer } = await serve({ tools: "save", config: { quotas: { prices } } });
    const { usage } = await run("What is wool?");
    expect(usage).toMatchObject({ web_searches: 1, cost: 10_015 });
    expect(await answer()).toMatchObject({ content: "ok", sources: [] });
    expect(sent()).not.toHaveProperty("web_search_options");
  });

  test("is refused if the budget does not pay its search", async () => {
    const prices = { "*": { input: 0, output: 0, web_search: 10 } };
    const { run } = await serve({ config: { quotas: { user: { cost_per_day: 0.015 }, prices } } });
    expect(await run("What is wool?")).toMatchObject({ status: "success", usage: { cost: 10_000 } });
    await expect(run("And yarn?")).rejects.toThrow("tokens of input and a web search");
    expect(provider.requests()).toHaveLength(1);
  });

  test("that is stopped counts its search too", async () => {
    provider.enqueue({ ...ANSWER, breakAfter: { frames: 4, with: "silence" } });
    const { client, answer } = await serve({ tools: "save" });
    const begun = await client.start("t", { input: "go" });
    for await (const { event, data } of client.runs.events("t", begun.id))
      if (event === "on_chat_model_stream" && "delta" in data && data.delta.includes("Wool"))
        await client.stop("t", begun.id);
    expect(await answer()).toMatchObject({ incomplete: "stopped", sources: [] });
  });

  test("has no citation where its place is not in the text", async () => {
    const places = [
      [-1, 2],
      [2, 2],
      [0, 99],
      ["0", "x"],
    ];
    const annotations = places.map(([start_index, end_index]) => ({
      type: "url_citation",
      url_citation: { ...WOOL, start_index, end_index },
    }));
    provider.enqueue({ raw: [chunk({ content: "Of sheep." }), chunk({ annotations }), chunk({}, "stop")] });
    const { run, answer } = await serve();
    await run("What is wool?");
    expect(await answer()).toMatchObject({ sources: [WOOL] });
    expect(await answer()).not.toHaveProperty("citations");
  });

  test("is kept if the server repeats a long list of pages with every piece", async () => {
    const annotations = Array.from({ length: 100 }, (_, index) => ({
      type: "url_citation",
      url_citation: {
        url: `https://wool.example/${index}`,
        title: "w".repeat(2000),
        start_index: 0,
        end_index: 2,
      },
    }));
    const pieces = Array.from({ length: 60 }, () => chunk({ content: "Wool. ", annotations }));
    provider.enqueue({ raw: [...pieces, chunk({}, "stop")] });
    const { run, answer } = await serve();
    expect(await run("What is wool?")).toMatchObject({ status: "success" });
    expect((await answer()).sources).toHaveLength(100);
  });

  test("is requested without the settings that OpenAI's older search models reject", async () => {
    const { run } = await serve({ model: "gpt-4o-search-preview-2025-03-11", more: ", temperature: 0.5" });
    const output_schema = { type: "object", properties: { from: { type: "string" } }, required: ["from"] };
    provider.enqueue(ANSWER, { blocks: [say('{"from":"sheep"}')] });
    expect(await run("What is wool?")).toMatchObject({ status: "success" });
    expect(await run("From what?", { output_schema })).toMatchObject({ output: { from: "sheep" } });
    expect(sent().response_format).toMatchObject({ type: "json_schema" });
  });
});

const chunk = (delta: object, finish_reason: string | null = null, more: object = {}) => ({
  ...{ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] },
  ...more,
});

describe("a model behind a gateway", () => {
  const corp = { model: "corp-search", more: ", searches: true" };

  test("searches if its operator says so, and counts each answer that may have searched", async () => {
    const { run, answer } = await serve(corp);
    expect(await run("What is wool?")).toMatchObject({ usage: { web_searches: 1 } });
    expect(await answer()).toMatchObject({ sources: [] });
    expect(sent()).toMatchObject({ web_search_options: {} });
  });

  test("does not search for an agent without the tool", async () => {
    const { run, answer } = await serve({ ...corp, tools: "save" });
    expect((await run("What is wool?")).usage).not.toHaveProperty("web_searches");
    expect(await answer()).not.toHaveProperty("sources");
    expect(sent()).not.toHaveProperty("web_search_options");
  });

  test("reserves the price of one search, because no request can limit its searches", async () => {
    const prices = { "*": { input: 0, output: 0, web_search: 10 } };
    const quotas = { user: { cost_per_day: 0.015 }, prices };
    const { run } = await serve({ ...corp, search: { max_uses: 5 }, config: { quotas } });
    expect(await run("What is wool?")).toMatchObject({ usage: { cost: 10_000 } });
    expect(sent()).toHaveProperty("web_search_options");
    expect(await run("And yarn?")).toMatchObject({ status: "success", usage: { cost: 0 } });
    expect(sent()).not.toHaveProperty("web_search_options");
  });

  test("has searched if its answer says so", async () => {
    const [annotated, counted] = [
      { annotations: [{ type: "url_citation", url_citation: { ...WOOL, start_index: 0, end_index: 2 } }] },
      { usage: { prompt_tokens: 1, completion_tokens: 1, server_tool_use: { web_search_requests: 3 } } },
    ];
    provider.enqueue(
      { raw: [chunk({ content: "Of sheep.", ...annotated }), chunk({}, "stop")] },
      { raw: [chunk({ content: "Of sheep." }), chunk({}, "stop", counted)] },
    );
    const { run, answer } = await serve({ model: "corp", tools: "save" });
    expect(await run("What is wool?")).toMatchObject({ usage: { web_searches: 1 } });
    expect(await answer()).toMatchObject({ sources: [WOOL] });
    expect(await run("What is wool?")).toMatchObject({ usage: { web_searches: 3 } });
    expect(await answer()).toMatchObject({ sources: [] });
  });
});

describe("rules about searches", () => {
  const flow = (rule: string) => `permissions: { mode: bypass, flow: [${rule}] }`;
  const refusal = (why: string) => ({
    ...{ status: "error", error: { code: "model_rejected", message: expect.stringContaining(why) } },
  });
  const NOT_ALLOWED = refusal("searches the web in every answer, but the rules do not allow `web_search`");

  test("each answer of a search model counts as a reading of web_search", async () => {
    provider.enqueue({ blocks: [call("save")] });
    const { run } = await serve({ tools: "save", agent: flow("{ after: [web_search], ask: [save] }") });
    expect(await run("go")).toMatchObject({ status: "interrupted" });
  });

  test.each([
    [
      "a rule that denies some searches",
      "web_search",
      "{ mode: bypass, rules: [{ deny: web_search, regex: x }] }",
    ],
    [
      "a rule about searches, for an agent without the tool",
      "save",
      '{ mode: bypass, rules: [{ deny: "web_*" }] }',
    ],
    ["a mode that would ask", "web_search", "{}"],
  ])("a search model is not called under %s", async (_, tools, permissions) => {
    const { run } = await serve({ tools, agent: `permissions: ${permissions}` });
    expect(await run("go")).toMatchObject(NOT_ALLOWED);
    expect(provider.requests()).toEqual([]);
  });

  test("a search model is called where a rule allows searches", async () => {
    const { run } = await serve({ agent: "permissions: { rules: [{ allow: web_search }] }" });
    expect(await run("go")).toMatchObject({ status: "success" });
  });

  test("a search model is not called after a reading whose rule denies searches", async () => {
    provider.enqueue({ blocks: [call("save")] });
    const { run } = await serve({ tools: "save", agent: flow("{ after: [save], deny: [web_search] }") });
    expect(await run("go")).toMatchObject(NOT_ALLOWED);
    expect(provider.requests()).toHaveLength(1);
  });

  test("nor for a title of a thread that flow rules apply to", async () => {
    const { run, client } = await serve({
      tools: "save",
      agent: flow("{ after: [save], deny: [web_search] }"),
    });
    await run("go");
    await expect(client.threads.suggestTitle("t")).rejects.toMatchObject({ code: "model_rejected" });
    expect(provider.requests()).toHaveLength(1);
  });

  test("nor for a title of a subagent's thread, whose inherited rules only its runs know", async () => {
    provider.enqueue({ blocks: [call("task", { agent: "helper", task: "Search for wool.", context: "" })] });
    const { run, client } = await serve({
      ...{ model: "gpt-5-mini", tools: "save" },
      agent: `
    subagents: [helper]
  helper: { model: ${modelOf("gpt-5-search-api")}, tools: [save] }`,
    });
    await run("go");
    const [child] = (await client.threads.list({ parent: "t" })).items;
    await expect(client.threads.suggestTitle(child?.id ?? "")).rejects.toMatchObject({
      code: "model_rejected",
    });
  });

  test("a search model suggests a title for an agent without rules", async () => {
    const { run, client } = await serve();
    await run("go");
    provider.enqueue({ blocks: [say("About wool")] });
    expect(await client.threads.suggestTitle("t")).toMatchObject({ title: "About wool" });
  });

  test("nor as the fallback of another model", async () => {
    provider.enqueue({ blocks: [call("save")] }, { fail: "server_error" });
    const { run } = await serve({
      ...{ model: "gpt-5-mini", tools: "save", more: ", fallback: [search]" },
      agent: `hooks: { retry: { attempts: 1 } }
    ${flow("{ after: [save], deny: [web_search] }")}`,
    });
    expect(await run("go")).toMatchObject(NOT_ALLOWED);
    expect(provider.requests()).toHaveLength(2);
  });

  test("nor by a subagent without permissions of its own", async () => {
    provider.enqueue(
      { blocks: [call("save")] },
      { blocks: [call("task", { agent: "helper", task: "Search for wool.", context: "" })] },
    );
    const { run } = await serve({
      ...{ model: "gpt-5-mini", tools: "save" },
      agent: `
    subagents: [helper]
    ${flow("{ after: [save], deny: [web_search] }")}
  helper: { model: ${modelOf("gpt-5-search-api")}, tools: [save] }`,
    });
    await run("go");
    expect(provider.requests().map((request) => sentBody(request).model)).not.toContain("gpt-5-search-api");
    expect(provider.requests().length).toBeGreaterThan(2);
  });
});

describe("the limits to domains, which these searches cannot have", () => {
  const limited = { search: { allowed_domains: ["wool.example"] }, models: "" };

  test.each([
    ["gpt-5-search-api", "", "web_search"],
    ["gpt-5-search-api", "", "save"],
    ["gpt-5-search-api", "", '"*"'],
    ["corp-search", ", searches: true", "web_search"],
    ["gpt-5-mini", ", fallback: [openai:gpt-4o-search-preview]", "save"],
  ])("an agent with %s%s and the tools %s does not load", async (model, more, tools) => {
    await expect(serve({ ...limited, model, more, tools })).rejects.toThrow(
      "cannot limit its search to domains",
    );
  });

  test("a run cannot request a search model", async () => {
    const { client } = await serve({ ...limited, model: "gpt-5-mini", tools: "save" });
    const body = { input: "go", model: "openai:gpt-5-search-api" };
    await expect(client.start("t", body)).rejects.toThrow("cannot limit its search to domains");
    expect(provider.requests()).toEqual([]);
  });
});

test.each([
  { provider: "openai", model: "gpt-5-mini" },
  { provider: "azure", model: "gpt-5-mini", base_url: "https://acme.openai.azure.com" },
  { provider: "gemini", model: "gemini-2.5-flash" },
])("a model of a provider that searches with other models only is refused: $provider:$model", (model) => {
  expect(() => createModel({ ...model, searches: true }, {})).toThrow("has no search of its own");
});
