// All providers behind one face, so that one suite tells what all promise.

import { afterAll, beforeAll } from "vitest";
import type { ModelSpec } from "../../../src/agent/core/agent.ts";
import { AppError } from "../../../src/agent/core/errors.ts";
import { userMessage } from "../../../src/agent/core/message.ts";
import type { Model, ModelReply, ModelRequest } from "../../../src/agent/core/model.ts";
import type { Stream } from "../../../src/agent/core/stream.ts";
import { createModel } from "../../../src/agent/models/index.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { type SentBody, sentBody } from "../../support/fake-provider/sent-body.ts";
import { type FakeProvider, startFakeProvider } from "../../support/fake-provider/server.ts";

export const KEY = "sk-test-0123456789abcdef";

const VERTEX = { GOOGLE_CLOUD_PROJECT: "acme", GOOGLE_CLOUD_LOCATION: "europe-west1" };
const BEDROCK = { AWS_REGION: "eu-central-1" };

export interface Provider {
  readonly name: string;
  /** Whose protocol it speaks. */
  readonly family: "anthropic" | "openai";
  /** Thoughts go back to it by their signature alone. */
  readonly signsOnly?: true;
  /** It does not tell of what it writes to its cache. */
  readonly countsNoWrites?: true;
  readonly takesNoDocuments?: true;
  /** The header that brings the key. Default: `authorization`. */
  readonly keyHeader?: string;
  /** A model of this provider that the fake one answers for. */
  model(fake: FakeProvider, options?: Partial<Exclude<ModelSpec, string>>): Model;
}

export const PROVIDERS: readonly Provider[] = [
  {
    name: "anthropic",
    family: "anthropic",
    model: (fake, options) => modelAt("anthropic", "claude-sonnet-4-5", { base_url: fake.url, ...options }),
  },
  {
    name: "openai",
    family: "openai",
    model: (fake, options) => modelAt("openai", "gpt-5-mini", { base_url: `${fake.url}/v1`, ...options }),
  },
  {
    name: "azure",
    family: "openai",
    keyHeader: "api-key",
    model: (fake, options) => modelAt("azure", "gpt-5-mini", { base_url: fake.url, ...options }),
  },
  {
    name: "bedrock",
    family: "anthropic",
    model: (fake, options) =>
      modelAt(
        "bedrock",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        { base_url: fake.url, ...options },
        BEDROCK,
      ),
  },
  {
    name: "vertex claude",
    family: "anthropic",
    model: (fake, options) =>
      modelAt("vertex", "claude-sonnet-4-5@20250929", { base_url: `${fake.url}/v1`, ...options }, VERTEX),
  },
  {
    name: "vertex gemini",
    family: "openai",
    ...({ signsOnly: true, countsNoWrites: true, takesNoDocuments: true } as const),
    model: (fake, options) =>
      modelAt("vertex", "gemini-2.5-flash", { base_url: `${fake.url}/v1`, ...options }, VERTEX),
  },
  {
    name: "gemini",
    family: "openai",
    ...({ signsOnly: true, countsNoWrites: true, takesNoDocuments: true } as const),
    model: (fake, options) =>
      modelAt("gemini", "gemini-2.5-flash", { base_url: `${fake.url}/v1beta/openai`, ...options }),
  },
];

/** One for each way to write a request and to read a reply: the others differ from these in addresses and credentials. */
export const PROTOCOLS = PROVIDERS.filter(({ name }) => ["anthropic", "openai", "gemini"].includes(name));

type Options = Partial<Exclude<ModelSpec, string>>;

function modelAt(provider: string, model: string, options: Options, env: NodeJS.ProcessEnv = {}): Model {
  return createModel({ provider, model, api_key: KEY, ...options }, env);
}

/** A fake provider for the tests of one file. */
export function fakeProvider(): { readonly current: FakeProvider } {
  let fake: FakeProvider | undefined;
  beforeAll(async () => {
    fake = await startFakeProvider();
  });
  afterAll(() => fake?.close());
  return {
    get current() {
      if (!fake) throw new Error("The fake provider runs inside tests only.");
      return fake;
    },
  };
}

export function request(model: Model, parts: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model,
    system: [],
    messages: [userMessage("hello")],
    tools: [],
    settings: {},
    signal: new AbortController().signal,
    ...parts,
  };
}

export interface Heard {
  readonly events: StreamEvent[];
  readonly reply: ModelReply;
}

export async function hear(stream: Stream<ModelReply>, events: StreamEvent[] = []): Promise<Heard> {
  for (;;) {
    const item = await stream.next();
    if (item.done) return { events, reply: item.value };
    events.push(item.value);
  }
}

export const ask = (model: Model, parts: Partial<ModelRequest> = {}) =>
  hear(model.stream(request(model, parts)));

/** What went wrong, for a call that is meant to fail. */
export async function failing(model: Model, parts: Partial<ModelRequest> = {}): Promise<AppError> {
  const error = await ask(model, parts).catch((error: unknown) => error);
  if (error instanceof AppError) return error;
  throw new Error(`expected an AppError, got ${JSON.stringify(error)}`, { cause: error });
}

/** What the last request held. */
export const lastBody = (fake: FakeProvider): SentBody => sentBody(fake.requests().at(-1));
