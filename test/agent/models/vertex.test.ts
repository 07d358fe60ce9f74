// Models at Vertex AI: the project in the path, and Google's credentials.

import { expect, onTestFinished, test, vi } from "vitest";
import { createModel, missingKey } from "../../../src/agent/models/index.ts";
import { httpServer, json, type LocalServer } from "../../support/hostile.ts";
import { ask, failing, fakeProvider } from "./providers.ts";

const fake = fakeProvider();
const last = () => fake.current.requests().at(-1);
const ENV = { GOOGLE_CLOUD_PROJECT: "acme", GOOGLE_CLOUD_LOCATION: "europe-west1" };

const vertex = (model: string, env: NodeJS.ProcessEnv = ENV) =>
  createModel({ provider: "vertex", model, base_url: `${fake.current.url}/v1` }, env);

/** The machine's own server of credentials, as Google Cloud has one. */
async function machine(token: string): Promise<LocalServer> {
  const server = await httpServer((heard, response) => {
    response.setHeader("metadata-flavor", "Google");
    if (heard.headers["metadata-flavor"] !== "Google") response.writeHead(403).end();
    else if (!heard.path.includes("/token")) json({})(heard, response);
    else json({ access_token: token, expires_in: 3600, token_type: "Bearer" })(heard, response);
  });
  vi.stubEnv("GCE_METADATA_HOST", `127.0.0.1:${server.port}`);
  vi.stubEnv("METADATA_SERVER_DETECTION", "assume-present");
  vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", "");
  onTestFinished(() => void vi.unstubAllEnvs());
  return server;
}

test.each([
  [
    "claude-sonnet-4-5@20250929",
    "/v1/projects/acme/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict",
  ],
  ["gemini-2.5-flash", "/v1/projects/acme/locations/europe-west1/endpoints/openapi/chat/completions"],
])(
  "%s is called in the project and location with a token of the machine, which is requested once",
  async (model, url) => {
    const { heard } = await machine("ya29.machine-token");
    const asking = vertex(model);
    await ask(asking);
    await ask(asking);
    expect(last()?.url).toBe(url);
    expect(last()?.headers.authorization).toBe("Bearer ya29.machine-token");
    expect(heard.filter(({ path }) => path.includes("/token"))).toHaveLength(1);
  },
);

test("the project is required, and the error names it if it is missing", async () => {
  expect(missingKey("vertex:gemini-2.5-flash", {})).toBe("GOOGLE_CLOUD_PROJECT");
  expect(missingKey("vertex:gemini-2.5-flash", { ANTHROPIC_VERTEX_PROJECT_ID: "acme" })).toBeUndefined();
  for (const model of ["gemini-2.5-flash", "claude-sonnet-4-5"])
    expect((await failing(vertex(model, {}))).message).toContain("Set GOOGLE_CLOUD_PROJECT.");
});
