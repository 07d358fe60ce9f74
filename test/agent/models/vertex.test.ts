// Models at Vertex AI: the project in the path, and Google's credentials.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { createModel, missingKey } from "../../../src/agent/models/index.ts";
import { ask, failing, fakeProvider } from "./providers.ts";

const fake = fakeProvider();
const last = () => fake.current.requests().at(-1);
const ENV = { GOOGLE_CLOUD_PROJECT: "acme", GOOGLE_CLOUD_LOCATION: "europe-west1" };

const vertex = (model: string, env: NodeJS.ProcessEnv = ENV) =>
  createModel({ provider: "vertex", model, base_url: `${fake.current.url}/v1` }, env);

/** The machine's own server of credentials, as Google Cloud has one. Returns what it was asked for. */
async function machine(token: string): Promise<string[]> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(String(request.url));
    response.setHeader("metadata-flavor", "Google");
    response.setHeader("content-type", "application/json");
    if (request.headers["metadata-flavor"] !== "Google") response.writeHead(403).end();
    else if (request.url?.includes("/token"))
      response.end(JSON.stringify({ access_token: token, expires_in: 3600, token_type: "Bearer" }));
    else response.end(JSON.stringify({}));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(() => void server.close());
  // A server that listens on TCP has such an address.
  vi.stubEnv("GCE_METADATA_HOST", `127.0.0.1:${(server.address() as AddressInfo).port}`);
  vi.stubEnv("METADATA_SERVER_DETECTION", "assume-present");
  vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", "");
  onTestFinished(() => void vi.unstubAllEnvs());
  return asked;
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
    const asked = await machine("ya29.machine-token");
    const asking = vertex(model);
    await ask(asking);
    await ask(asking);
    expect(last()?.url).toBe(url);
    expect(last()?.headers.authorization).toBe("Bearer ya29.machine-token");
    expect(asked.filter((path) => path.includes("/token"))).toHaveLength(1);
  },
);

test("the project is required, and the error names it if it is missing", async () => {
  expect(missingKey("vertex:gemini-2.5-flash", {})).toBe("GOOGLE_CLOUD_PROJECT");
  expect(missingKey("vertex:gemini-2.5-flash", { ANTHROPIC_VERTEX_PROJECT_ID: "acme" })).toBeUndefined();
  for (const model of ["gemini-2.5-flash", "claude-sonnet-4-5"])
    expect((await failing(vertex(model, {}))).message).toContain("Set GOOGLE_CLOUD_PROJECT.");
});
