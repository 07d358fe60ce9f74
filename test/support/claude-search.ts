// Agents on Claude whose provider searches the web itself. The provider refuses blocks that come back changed, elsewhere
// or not at all.

import { afterEach, beforeEach, expect } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import { createClient } from "../../src/client/client.ts";
import type { Message } from "../../src/protocol/message.ts";
import { anthropicFault } from "./fake-provider/anthropic-strict.ts";
import { type Answer, cited, say, search, think } from "./fake-provider/script.ts";
import { blocksOf, sentBody } from "./fake-provider/sent-body.ts";
import { type FakeProvider, startFakeProvider } from "./fake-provider/server.ts";
import { type ServerOptions, startServer } from "./server.ts";

export const WOOL = { url: "https://wool.example/", title: "Wool" };
export const YARN = { url: "https://yarn.example/", title: "Yarn" };
/** An answer after one search. */
export const ANSWER = {
  blocks: [
    think("The user asks about wool."),
    say("Let me search. "),
    ...search("wool", [WOOL, YARN]),
    say("I found this: "),
    cited("Wool comes from sheep", WOOL),
    say(", says a page."),
  ],
} satisfies Answer;

export interface SearchOptions extends ServerOptions {
  /** More fields of the agent, in YAML. */
  readonly agent?: string;
  /** Settings of `web.search`. */
  readonly search?: object;
  /** The agent's tools, in YAML. */
  readonly chosen?: string;
  readonly model?: never;
}

/** Starts a provider before each test of the file, and fails the test if the provider refused a request. */
export function searchWorld() {
  let provider: FakeProvider;
  beforeEach(async () => {
    provider = await startFakeProvider();
  });
  afterEach(async () => {
    const refused = provider.requests().filter(({ status }) => status === 400);
    expect(refused.map((asked) => anthropicFault({ ...asked, text: "" }))).toEqual([]);
    await provider.close();
  });
  const claude = (model = "claude-sonnet-4-5") =>
    `{ provider: anthropic, model: ${model}, base_url: "${provider.url}", api_key: k, searches: true }`;

  return {
    get provider() {
      return provider;
    },
    claude,
    /** Starts a server whose models are `small` and `other`, and that of the agent. */
    async serve({
      agent = "",
      search: more,
      chosen = "web_search, save",
      config,
      ...options
    }: SearchOptions = {}) {
      const agents = `
models:
  small: ${claude("claude-haiku-4-5")}
  other: { provider: openai, model: gpt-5-mini, base_url: "${provider.url}/v1", api_key: k }
agents:
  assistant:
    model: ${claude()}
    tools: [${chosen}]
    ${agent}
`;
      const server = await startServer({
        ...{ realModels: true, agents, tools: [save] },
        config: { web: { search: { provider: "model", ...more } }, ...config },
        ...options,
      });
      return { ...server, ...ofThread(server.url) };
    },
    /** Returns the types of the blocks of one message in the last request. */
    sentTypes: (index: number) =>
      blocksOf(sentBody(provider.requests().at(-1)).messages[index] ?? {}).map(({ type }) => type),
  };
}

/** Uses one thread of the server. */
function ofThread(baseUrl: string) {
  const client = createClient({ baseUrl });
  const messages = async () => (await client.threads.messages("t")).items as Message[];
  return {
    client,
    messages,
    async run(input: string, more: object = {}) {
      const begun = await client.start("t", { input, ...more });
      for await (const _ of client.runs.events("t", begun.id));
      return client.runs.get("t", begun.id);
    },
    async answer() {
      const found = (await messages()).findLast(({ role }) => role === "assistant");
      if (found?.role !== "assistant") throw new Error("no answer");
      return found;
    },
  };
}

const save = defineTool({
  ...{ name: "save", description: "Saves.", parameters: z.object({}) },
  annotations: { requiresPermission: false },
  execute: async () => "saved",
});
