import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ModelSpec } from "../../../src/agent/core/agent.ts";
import { createModel, missingKey, modelDoubt } from "../../../src/agent/models/index.ts";
import { temporaryFolder } from "../../support/server.ts";
import { ask, failing, fakeProvider } from "./providers.ts";

const fake = fakeProvider();

describe("a model's name", () => {
  test.each([
    ["anthropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"],
    ["claude-sonnet-4-20250514", "anthropic:claude-sonnet-4-20250514"],
    ["gpt-5-mini", "openai:gpt-5-mini"],
    ["o4-mini", "openai:o4-mini"],
    ["ollama:qwen3:8b", "ollama:qwen3:8b"],
    ["openrouter:anthropic/claude-sonnet-4.5", "openrouter:anthropic/claude-sonnet-4.5"],
  ])("`%s` means %s", (spec, name) => {
    expect(createModel(ModelSpec.parse(spec), {}).name).toBe(name);
  });

  test.each(["llama", "claude", ":x", "openai:"])("`%s` is refused", (spec) => {
    expect(() => createModel(spec, {})).toThrow(
      `\`${spec}\` must be provider:model, for example openai:gpt-5`,
    );
  });

  test("with an unknown provider is refused, with a list of the known ones", () => {
    expect(() => createModel("constructor:x", {})).toThrow("There is no model provider `constructor`");
    expect(() => createModel("antropic:claude-sonnet-4-5", {})).toThrow(
      /`antropic`; did you mean `anthropic`\?.*`openai`/,
    );
  });
});

describe("the address and the key", () => {
  test("come from the environment", async () => {
    const env = { OPENAI_BASE_URL: `${fake.current.url}/v1/`, OPENAI_API_KEY: " sk-env \n" };
    await ask(createModel("openai:gpt-5-mini", env));
    expect(fake.current.requests().at(-1)?.headers.authorization).toBe("Bearer sk-env");
  });

  test("can be set in the configuration instead", async () => {
    const spec = {
      provider: "groq",
      model: "llama",
      base_url: `${fake.current.url}/v1`,
      api_key_env: "TEAM_KEY",
    };
    await ask(createModel(spec, { TEAM_KEY: "gsk-team", GROQ_API_KEY: "gsk-other" }));
    expect(fake.current.requests().at(-1)?.headers.authorization).toBe("Bearer gsk-team");
  });

  test("an invalid address is refused, with a valid example", () => {
    const env = { OPENAI_BASE_URL: "localhost", OPENAI_API_KEY: "sk" };
    expect(() => createModel("openai:gpt-5", env)).toThrow(
      /`localhost` is not a valid base URL.*https:\/\/api\.openai\.com/,
    );
  });

  test("a missing key fails the first call, and the error names the variable", async () => {
    const error = await failing(createModel("anthropic:claude-sonnet-4-5", {}));
    expect(error.code).toBe("model_auth");
    expect(error.message).toContain("Set ANTHROPIC_API_KEY.");
  });

  test("a key that cannot be a header is not sent", async () => {
    const spec = {
      provider: "openai",
      model: "gpt-5",
      base_url: fake.current.url,
      api_key: "sk two\u2028lines",
    };
    const error = await failing(createModel(spec, {}));
    expect(error.code).toBe("model_auth");
    expect(error.message).not.toContain("two");
  });

  test("a server at another address may not need a key", async () => {
    const spec = { provider: "openai", model: "local", base_url: `${fake.current.url}/v1` };
    expect(missingKey(spec, {})).toBeUndefined();
    expect((await ask(createModel(spec, {}))).reply.content).toBe("ok");
  });

  test.each<[ModelSpec, NodeJS.ProcessEnv, string | undefined]>([
    ["anthropic:claude-sonnet-4-5", {}, "ANTHROPIC_API_KEY"],
    ["anthropic:claude-sonnet-4-5", { ANTHROPIC_API_KEY: " " }, "ANTHROPIC_API_KEY"],
    ["anthropic:claude-sonnet-4-5", { ANTHROPIC_API_KEY: "sk" }, undefined],
    ["mistral:mistral-large-latest", {}, "MISTRAL_API_KEY"],
    ["ollama:qwen3", {}, undefined],
    ["scripted:demo", {}, undefined],
    [{ provider: "openai", model: "gpt-5", api_key: "sk" }, {}, undefined],
    [
      { provider: "openai", model: "gpt-5", base_url: "http://10.0.0.1/v1", api_key_env: "MY_KEY" },
      {},
      "MY_KEY",
    ],
    [{ provider: "ollama", model: "qwen3", fallback: ["gpt-5"] }, {}, "OPENAI_API_KEY"],
  ])("of %j with %j: %s is missing", (spec, env, variable) => {
    expect(missingKey(spec, env)).toBe(variable);
  });
});

test("fallbacks follow the model in order", () => {
  const spec: ModelSpec = {
    ...{ provider: "anthropic", model: "claude-sonnet-4-5" },
    fallback: ["gpt-5-mini", { provider: "ollama", model: "qwen3" }],
  };
  const names: string[] = [];
  for (let model = createModel(spec, {}); ; model = model.fallback) {
    names.push(model.name);
    if (!model.fallback) break;
  }
  expect(names).toEqual(["anthropic:claude-sonnet-4-5", "openai:gpt-5-mini", "ollama:qwen3"]);
});

test("a script file is a model too; a missing or invalid one fails its runs with its name and the error", async () => {
  const file = join(await temporaryFolder(), "turns.yaml");
  const spec = `scripted:${file}`;
  expect(modelDoubt(spec, {})).toBe(`the file \`${file}\` does not exist, so calls to its model will fail`);
  expect(await failing(createModel(spec, {}))).toMatchObject({
    code: "config_invalid",
    message: `The script \`${file}\` of the model \`${spec}\` does not exist.`,
  });
  await writeFile(file, "- say: Hello\n- sya: Hello\n");
  expect(modelDoubt(spec, {})).toBeUndefined();
  expect((await failing(createModel(spec, {}))).message).toContain(
    `${file}:2:3: [1]: unknown key \`sya\`; did you mean \`say\`?`,
  );
  await writeFile(file, "- say: Hello from a file\n");
  expect((await ask(createModel(spec, {}))).reply.content).toBe("Hello from a file");
});
