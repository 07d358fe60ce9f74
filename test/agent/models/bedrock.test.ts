// Models at Bedrock: who may ask, and the binary frames of its streams.

import { expect, test } from "vitest";
import { createModel, missingKey } from "../../../src/agent/models/index.ts";
import { AWS_KEY, AWS_SECRET } from "../../support/fake-provider/aws.ts";
import { say, think } from "../../support/fake-provider/script.ts";
import { ask, failing, fakeProvider, KEY } from "./providers.ts";

const fake = fakeProvider();
const CLAUDE = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
const last = () => fake.current.requests().at(-1);

const claude = (env: NodeJS.ProcessEnv, options = {}) =>
  createModel({ provider: "bedrock", model: CLAUDE, base_url: fake.current.url, ...options }, env);
const SIGNED = {
  AWS_REGION: "eu-central-1",
  AWS_ACCESS_KEY_ID: AWS_KEY,
  AWS_SECRET_ACCESS_KEY: AWS_SECRET,
};

test("a request is signed with the credentials from the environment, and passes Bedrock's check", async () => {
  fake.current.enqueue({ blocks: [think("Hm. "), say("Ahoj, světe 🐎")] });
  const { reply } = await ask(claude(SIGNED, { thinking: 2048 }));
  expect(reply).toMatchObject({ content: "Ahoj, světe 🐎", reasoning: [{ text: "Hm. " }] });
  expect(last()?.headers.authorization).toMatch(
    /^AWS4-HMAC-SHA256 Credential=AKIDFAKE.*\/eu-central-1\/bedrock/,
  );
  expect(last()?.url).toBe(`/model/${CLAUDE}/invoke-with-response-stream`);
});

test("a Bedrock API key is sent instead of a signature", async () => {
  await ask(claude({ ...SIGNED, AWS_BEARER_TOKEN_BEDROCK: KEY }));
  expect(last()?.headers.authorization).toBe(`Bearer ${KEY}`);
});

test("a temporary session is part of the signature", async () => {
  await ask(claude({ ...SIGNED, AWS_SESSION_TOKEN: "session-token" }));
  expect(last()?.headers["x-amz-security-token"]).toBe("session-token");
});

test("other models use Bedrock's endpoint for OpenAI's protocol, with a key", async () => {
  const spec = { provider: "bedrock", model: "openai.gpt-oss-120b-1:0", base_url: fake.current.url };
  await ask(createModel(spec, { ...SIGNED, AWS_BEARER_TOKEN_BEDROCK: KEY }));
  expect(last()).toMatchObject({ url: "/openai/v1/chat/completions", vendor: "openai" });
  const error = await failing(createModel(spec, SIGNED));
  expect(error.message).toContain("Set AWS_BEARER_TOKEN_BEDROCK");
});

test("the region is required, and the error names it if it is missing", async () => {
  expect(missingKey(`bedrock:${CLAUDE}`, {})).toBe("AWS_REGION");
  expect(missingKey(`bedrock:${CLAUDE}`, { AWS_REGION: "eu-west-1" })).toBeUndefined();
  expect((await failing(claude({}))).message).toContain("Set AWS_REGION.");
});
