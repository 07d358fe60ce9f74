// Which agents may search through their model's provider: models, tools, permissions and flow rules.

import { describe, expect, test } from "vitest";
import { createModel } from "../../src/agent/models/index.ts";
import { ANSWER, type SearchOptions, searchWorld, YARN } from "../support/claude-search.ts";
import { type Answer, call, say, search } from "../support/fake-provider/script.ts";
import { sentBody } from "../support/fake-provider/sent-body.ts";

const world = searchWorld();
const { claude, serve } = world;

describe("an agent is offered the search", () => {
  const offered = async (options: SearchOptions, ofUser?: object) => {
    const { client, run } = await serve(options);
    if (ofUser) await client.permissions.addToAgent("assistant", ofUser);
    await run("go");
    return (
      sentBody(world.provider.requests().at(-1)).tools?.some(({ name }) => name === "web_search") ?? false
    );
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
    ["not if a rule of its user denies it", "bypass }", { deny: "web_search" }],
    [
      "not if only a rule of its user allows what a rule denies",
      "bypass, rules: [{ deny: web_search }] }",
      { allow: "web_search", priority: 9 },
    ],
  ])("%s", async (_, mode, ofUser) => {
    expect(await offered({ agent: `permissions: { mode: ${mode}` }, ofUser)).toBe(false);
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
    world.provider.enqueue({ blocks: [...ANSWER.blocks, call("save")] });
    const { run } = await serve({ agent: flow("{ after: [web_search], ask: [save] }") });
    expect(await run("go")).toMatchObject({ status: "interrupted" });
  });

  test("a failed search does not", async () => {
    world.provider.enqueue({ blocks: [...search("wool", { error: "unavailable" }), call("save")] });
    const { run } = await serve({ agent: flow("{ after: [web_search], ask: [save] }") });
    expect(await run("go")).toMatchObject({ status: "success" });
  });

  test("a rule about web_search takes it away after a reading", async () => {
    world.provider.enqueue({ blocks: [call("save")] });
    const { run } = await serve({ agent: flow("{ after: [save], ask: [web_search] }") });
    await run("go");
    const names = world.provider
      .requests()
      .map((request) => sentBody(request).tools?.map(({ name }) => name));
    expect(names[0]).toContain("web_search");
    expect(names[1]).not.toContain("web_search");
  });

  test("they bind a subagent without permissions of its own", async () => {
    world.provider.enqueue(
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
    const named = world.provider
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
      world.provider.enqueue(paused, { fail });
      const { run, answer } = await serve({ agent });
      expect(await run("go")).toMatchObject({ status: "error", usage });
      expect(await answer()).toMatchObject({ incomplete: "failed", sources: [], usage });
      world.provider.enqueue({ blocks: [call("save")] });
      expect(await run("go")).toMatchObject({ status: "interrupted" });
    });

    test("stopped", async () => {
      world.provider.enqueue(paused, { hang: true });
      const { client, run, answer } = await serve({ agent });
      const begun = await client.start("t", { input: "go" });
      await world.provider.request(1);
      await client.stop("t", begun.id);
      for await (const _ of client.runs.events("t", begun.id));
      expect(await client.runs.get("t", begun.id)).toMatchObject({ status: "cancelled", usage });
      expect(await answer()).toMatchObject({ incomplete: "stopped", sources: [], usage });
      world.provider.enqueue({ blocks: [call("save")] });
      expect(await run("go")).toMatchObject({ status: "interrupted" });
    });
  });

  test("an answer that breaks off during a search counts too", async () => {
    const blocks = [say("Let me search for pages about wool."), search("wool", [])[0]];
    world.provider.enqueue({ blocks, breakAfter: { frames: 12, with: "silence" } });
    const { client, answer } = await serve();
    const begun = await client.start("t", { input: "go" });
    for await (const { event, data } of client.runs.events("t", begun.id))
      if (event === "on_chat_model_stream" && "delta" in data && data.delta.includes("wool"))
        await client.stop("t", begun.id);
    expect(await answer()).toMatchObject({ incomplete: "stopped", sources: [], usage: { estimated: true } });
  });

  test("an answer that breaks off after a search counts too", async () => {
    world.provider.enqueue({ ...ANSWER, breakAfter: { frames: 26, with: "silence" } });
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
    world.provider.enqueue({ blocks: [call("save")] });
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
