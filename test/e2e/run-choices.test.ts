// What operators decide of runs that users start: the models they may ask for, and who may send system messages.

import { describe, expect, test } from "vitest";
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
    run: (model: string) =>
      ask(`/threads/t${threads++}/runs`, "POST", { input: "hi", model, agent: "helper", background: true }),
    override: (model: string) => ask("/agents/helper/overrides", "PATCH", { model }),
  };
}

describe("with authentication", () => {
  test.each(["scripted:demo", "ollama:qwen3", "openai:gpt-5-mini", "gpt-5-mini"])(
    "a run may ask for a model that agents.yaml names: %s",
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
      const words = `Runs may not ask for the model \`${model}\` on this server. Allowed: \`scripted:demo\`, \`ollama:qwen3\`, \`openai:gpt-5-mini\`.`;
      for (const { status, json } of [await run(model), await override(model)]) {
        expect(status).toBe(400);
        expect(json.detail).toContain(words);
      }
    },
  );

  test("the operator's patterns allow more", async () => {
    const { run, override } = await serve({ ...HEADER, models: { allow: ["anthropic:*"] } });
    expect((await run("anthropic:claude-opus-4-8")).status).toBe(202);
    expect((await override("claude-opus-4-8")).status).toBe(200);
    expect((await run("ollama:qwen3")).status).toBe(202);
    expect((await run("openai:gpt-5")).json.detail).toMatch(/`anthropic:\*`\.$/);
  });
});

describe("without authentication", () => {
  test("a run may ask for any model, unless the operator lists some", async () => {
    expect((await (await serve({})).run("ollama:llama4")).status).toBe(202);
    const { run } = await serve({ models: { allow: ["openai:*"] } });
    expect((await run("anthropic:claude-opus-4-8")).status).toBe(400);
    expect((await run("openai:gpt-5")).status).toBe(202);
  });

  test("a script that does not exist is refused when the run is accepted", async () => {
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

  test("is refused where the operator says so, and the error says what is right", async () => {
    const refused = await send({ system_messages: "refuse" });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      code: "invalid_request",
      detail: "messages[1].role: this server accepts no `system` messages from users. Use `user`.",
    });
  });
});
