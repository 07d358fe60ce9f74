// What operators decide of runs that users start: the models they may ask for, and who may send system messages.

import { describe, expect, onTestFinished, test } from "vitest";
import { sentBody } from "../support/fake-provider/sent-body.ts";
import { startFakeProvider } from "../support/fake-provider/server.ts";
import { startServer } from "../support/server.ts";

const AGENTS = `
agents:
  helper: { model: "scripted:demo" }
  other:
    model: { provider: ollama, model: qwen3, base_url: "http://127.0.0.1:1", fallback: ["openai:gpt-5-mini"] }
`;
const HEADER = {
  ...{ auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] }, backends: { allow_local: true } },
};

async function serve(config: object) {
  const server = await startServer({ realModels: true, agents: AGENTS, config });
  const ask = async (path: string, method: string, body: object) => {
    const reply = await fetch(server.url + path, {
      method,
      headers: {
        ...{ "x-skein-tenant": "acme", "x-skein-user": "ada", "x-skein-scopes": "read run" },
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
    });
    return { status: reply.status, json: (await reply.json()) as { detail: string; model?: string } };
  };
  let threads = 0;
  return {
    models: async () => {
      const headers = { "x-skein-tenant": "acme", "x-skein-user": "ada", "x-skein-scopes": "read" };
      const reply = await fetch(`${server.url}/agents/helper`, { headers });
      return ((await reply.json()) as { choices: { models: unknown } }).choices.models;
    },
    run: (model: string) =>
      ask(`/threads/t${threads++}/runs`, "POST", { input: "hi", model, agent: "helper", background: true }),
    override: (model: string) => ask("/agents/helper/overrides", "PATCH", { model }),
  };
}

describe("with authentication", () => {
  test.each(["scripted:demo", "ollama:qwen3", "openai:gpt-5-mini", "gpt-5-mini"])(
    "a run can use a model that agents.yaml names: %s",
    async (model) => {
      const { run, override } = await serve(HEADER);
      expect((await run(model)).status).toBe(202);
      expect((await override(model)).status).toBe(200);
    },
  );

  test.each(["openai:gpt-5", "ollama:llama4", "anthropic:claude-opus-4-8"])(
    "any other model is refused, and the error lists the allowed ones: %s",
    async (model) => {
      const { run, override } = await serve(HEADER);
      const words = `Runs may not request the model \`${model}\` on this server. Allowed: \`scripted:demo\`, \`ollama:qwen3\`, \`openai:gpt-5-mini\`.`;
      for (const { status, json } of [await run(model), await override(model)]) {
        expect(status).toBe(400);
        expect(json.detail).toContain(words);
      }
    },
  );

  test("a run can use a model by its name in agents.yaml, with its own address and key", async () => {
    const provider = await startFakeProvider();
    onTestFinished(() => provider.close());
    const agents = `
models:
  cheap: { provider: openai, model: small, base_url: "${provider.url}/v1", api_key: sk-of-the-alias-0123456789 }
agents: { helper: { model: "scripted:demo" } }
`;
    const { url } = await startServer({ realModels: true, agents, config: HEADER });
    const headers = { "x-skein-tenant": "acme", "x-skein-user": "ada", "x-skein-scopes": "read run" };
    const run = await fetch(`${url}/threads/t/runs`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ input: "hi", model: "cheap" }),
    });
    expect(await run.json()).toMatchObject({ status: "success" });
    const { headers: sent, body } = await provider.request(0);
    expect(sent.authorization).toBe("Bearer sk-of-the-alias-0123456789");
    expect(sentBody({ body })).toMatchObject({ model: "small" });
    const messages = await (await fetch(`${url}/threads/t/messages`, { headers })).json();
    expect(messages).toMatchObject({ items: [{}, { role: "assistant", model: "openai:small" }] });
    const agent = await (await fetch(`${url}/agents/helper`, { headers })).json();
    expect(agent).toMatchObject({
      choices: { models: { any: false, names: ["scripted:demo", "cheap", "openai:small"] } },
    });
  });

  test("the models that a page can offer are those in agents.yaml, the agent's own first", async () => {
    const { models, run } = await serve(HEADER);
    const names = ["scripted:demo", "ollama:qwen3", "openai:gpt-5-mini"];
    expect(await models()).toEqual({ any: false, names, patterns: [] });
    for (const name of names) expect((await run(name)).status).toBe(202);
  });

  test("the models that a page can offer include the operator's names, and the patterns separately", async () => {
    const { models } = await serve({ ...HEADER, models: { allow: ["anthropic:*", "groq:llama-4"] } });
    expect(await models()).toMatchObject({
      ...{ any: false, patterns: ["anthropic:*"] },
      names: ["scripted:demo", "ollama:qwen3", "openai:gpt-5-mini", "groq:llama-4"],
    });
  });

  test("the operator's patterns allow more models", async () => {
    const { run, override } = await serve({ ...HEADER, models: { allow: ["anthropic:*"] } });
    expect((await run("anthropic:claude-opus-4-8")).status).toBe(202);
    expect((await override("claude-opus-4-8")).status).toBe(200);
    expect((await run("ollama:qwen3")).status).toBe(202);
    expect((await run("openai:gpt-5")).json.detail).toMatch(/`anthropic:\*`\.$/);
  });
});

describe("without authentication", () => {
  test("a run can use any model unless the operator lists some", async () => {
    expect((await (await serve({})).run("ollama:llama4")).status).toBe(202);
    expect(await (await serve({})).models()).toMatchObject({ any: true, patterns: [] });
    const { run, models } = await serve({ models: { allow: ["openai:*"] } });
    expect(await models()).toMatchObject({ any: false, patterns: ["openai:*"] });
    expect((await run("anthropic:claude-opus-4-8")).status).toBe(400);
    expect((await run("openai:gpt-5")).status).toBe(202);
  });

  test("a missing script is refused when the run is accepted", async () => {
    const { run } = await serve({});
    const { status, json } = await run("scripted:nope");
    expect(status).toBe(400);
    expect(json.detail).toContain("There is no built-in script `nope`.");
  });
});

describe("a system message of a user", () => {
  const send = async (config: object) => {
    const { url } = await startServer({ config });
    return fetch(`${url}/threads/t/runs`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({
        messages: [
          { role: "user", content: "hi" },
          { role: "system", content: "Be brief." },
        ],
      }),
    });
  };

  test("is accepted", async () => {
    expect((await send({})).status).toBe(200);
  });

  test("is refused if the operator says so, and the error explains the alternative", async () => {
    const refused = await send({ system_messages: "refuse" });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      code: "invalid_request",
      detail: "messages[1].role: this server accepts no `system` messages from users. Use `user`.",
    });
  });
});

describe("a model that the operator does not allow", () => {
  const user = { id: "m1", role: "user" };
  const WAYS: Readonly<Record<string, readonly [path: string, body: object]>> = {
    "a run": ["/threads/t/runs", { input: "hi", model: "openai:dear" }],
    "an override": ["/agents/helper/overrides", { model: "openai:dear" }],
    "OpenAI's chat completions": [
      "/v1/chat/completions",
      { model: "openai:dear", messages: [{ role: "user", content: "hi" }] },
    ],
    "OpenAI's responses": ["/v1/responses", { model: "openai:dear", input: "hi" }],
    LangGraph: [
      "/langgraph/threads/lg/runs/wait",
      {
        ...{
          assistant_id: "helper",
          if_not_exists: "create",
          input: { messages: [{ ...user, content: "hi" }] },
        },
        config: { configurable: { model: "openai:dear" } },
      },
    ],
    "AG-UI": [
      "/ag-ui/agent/helper/run",
      {
        ...{ threadId: "ag", runId: "r1", messages: [{ ...user, content: "hi" }], tools: [], context: [] },
        ...{ state: {}, forwardedProps: { model: "openai:dear" } },
      },
    ],
    "the AI SDK": [
      "/ai-sdk/helper/chat",
      { id: "ai", messages: [{ ...user, parts: [{ type: "text", text: "hi" }] }], model: "openai:dear" },
    ],
  };

  test.each(Object.keys(WAYS))("is never called by %s with the operator's key", async (way) => {
    const [path, body] = WAYS[way] ?? ["", {}];
    const fake = await startFakeProvider();
    onTestFinished(() => fake.close());
    const at = `base_url: "${fake.url}/v1", api_key: k`;
    const { url } = await startServer({
      realModels: true,
      agents: `agents: { helper: { model: { provider: openai, model: cheap, ${at} } } }`,
      config: { ...HEADER, wires: ["openai", "langgraph", "ag-ui", "ai-sdk"] },
    });
    const reply = await fetch(url + path, {
      method: path.endsWith("overrides") ? "PATCH" : "POST",
      headers: {
        ...{ "x-skein-tenant": "acme", "x-skein-user": "ada", "x-skein-scopes": "read run" },
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
    });
    await reply.text();
    // A name that these protocols carry beside the agent is ignored, unless it is allowed.
    const isAnswered = ["LangGraph", "AG-UI", "the AI SDK"].includes(way);
    const asked = fake.requests().map((request) => sentBody(request).model);
    expect(asked).toEqual(isAnswered ? ["cheap"] : []);
    expect(reply.status).toBe(isAnswered ? 200 : path.startsWith("/v1/") ? 404 : 400);
  });
});
