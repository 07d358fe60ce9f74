// OpenAI's models at Azure: the address, the version, and who may ask.

import { expect, onTestFinished, test, vi } from "vitest";
import { createModel, missingKey } from "../../../src/agent/models/index.ts";
import { packageFor } from "../../../src/agent/models/package.ts";
import { httpServer, json } from "../../support/hostile.ts";
import { ask, failing, fakeProvider, KEY } from "./providers.ts";

const fake = fakeProvider();
const last = () => fake.current.requests().at(-1);

test("a model is a deployment, with the endpoint and version from the environment", async () => {
  const env = {
    AZURE_OPENAI_ENDPOINT: `${fake.current.url}/`,
    AZURE_OPENAI_API_KEY: KEY,
    OPENAI_API_VERSION: "2025-03-01-preview",
  };
  await ask(createModel("azure:team-gpt", env));
  expect(last()?.url).toBe("/openai/deployments/team-gpt/chat/completions?api-version=2025-03-01-preview");
  expect(last()?.headers["api-key"]).toBe(KEY);
  expect(last()?.headers.authorization).toBeUndefined();
});

test("without a version, the newest general one is used", async () => {
  await ask(createModel({ provider: "azure", model: "m", base_url: fake.current.url, api_key: KEY }, {}));
  expect(last()?.url).toContain("?api-version=2024-10-21");
});

test.each<[string, NodeJS.ProcessEnv, string | undefined]>([
  ["the endpoint", { AZURE_OPENAI_API_KEY: KEY }, "AZURE_OPENAI_ENDPOINT"],
  ["the key", { AZURE_OPENAI_ENDPOINT: "https://x.openai.azure.com" }, "AZURE_OPENAI_API_KEY"],
  ["nothing", { AZURE_OPENAI_ENDPOINT: "https://x.openai.azure.com", AZURE_CLIENT_ID: "id" }, undefined],
])("%s is missing, and the error names it", async (_, env, variable) => {
  expect(missingKey("azure:m", env)).toBe(variable);
  if (variable === undefined) return;
  const error = await failing(createModel("azure:m", env));
  expect(error).toMatchObject({ code: "model_auth" });
  expect(error.message).toContain(`Set ${variable}.`);
});

test("a prompt that Azure's filter blocks fails the call with Azure's message", async () => {
  fake.current.enqueue({ fail: "content_filter" });
  const model = createModel({ provider: "azure", model: "m", base_url: fake.current.url, api_key: KEY }, {});
  const error = await failing(model);
  expect(error.code).toBe("model_rejected");
  expect(error.message).toContain("content management policy");
});

test("without a key, a token of the machine's identity is sent, and requested once", async () => {
  const token = "eyJ0eXAiOiJKV1QifQ.e30.sig";
  const expires_on = Math.floor(Date.now() / 1000) + 3600;
  const machine = await httpServer(json({ access_token: token, expires_on, token_type: "Bearer" }));
  vi.stubEnv("IDENTITY_ENDPOINT", `${machine.url}/token`);
  vi.stubEnv("IDENTITY_HEADER", "machine-secret");
  vi.stubEnv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential");
  onTestFinished(() => void vi.unstubAllEnvs());

  const model = createModel({ provider: "azure", model: "m", base_url: fake.current.url }, process.env);
  await ask(model);
  await ask(model);
  expect(last()?.headers.authorization).toBe(`Bearer ${token}`);
  expect(last()?.headers["api-key"]).toBeUndefined();
  expect(machine.heard).toMatchObject([{ headers: { "x-identity-header": "machine-secret" } }]);
});

test("an error names a package that is not installed", async () => {
  const missing = "@azure/not-installed";
  const loading = packageFor("azure:m", missing, () => import(missing));
  await expect(loading).rejects.toMatchObject({
    code: "config_invalid",
    message: expect.stringContaining("Run `npm install @azure/not-installed`."),
  });
});
