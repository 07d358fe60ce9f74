import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createAgent, defineHook, scriptedModel, webTools } from "../../../src/index.ts";
import { httpServer } from "../../support/hostile.ts";

test("an agent in a program reads the web", async () => {
  const web = await httpServer((_, response) =>
    response.writeHead(200, { "content-type": "text/plain" }).end("Of sheep."),
  );
  const call = { tool: "web_fetch", args: { url: web.url } };
  const agent = createAgent({
    model: scriptedModel([{ call: [call] }, { say: "ok" }]),
    tools: [...webTools({ private: `127.0.0.1:${web.port}`, robots: "ignore" })],
  });
  const { messages } = await agent.run("What is wool?").result;
  await agent.close();
  expect(messages.find(({ role }) => role === "tool")?.content).toContain("Of sheep.");
  expect(web.heard).toHaveLength(1);
});

test("invalid options of the web tools are refused with all errors", () => {
  expect(() => webTools({ allow: ["https://a.example"], search: { provider: "brave" } })).toThrow(
    /^webTools: allow\[0\]: must be a host .*\nwebTools: search\.api_key: is required for `brave`/,
  );
});

describe("a search model, whose search cannot be limited to domains", () => {
  const tools = webTools({ search: { provider: "model", allowed_domains: ["wool.example"] } });
  const model = {
    ...scriptedModel([{ say: "ok" }]),
    searches: true,
    searchesEverywhere: true,
    alwaysSearches: true,
  } as const;

  test("is refused for an agent whose tools have domains", () => {
    expect(() => createAgent({ model, tools })).toThrow("cannot limit its search to domains");
  });

  test("is not called for an agent whose hook adds such a tool", async () => {
    const searching = defineHook({
      ...{ name: "searching", options: z.object({}), activeByDefault: () => true },
      create: () => ({ name: "searching", tools: () => tools }),
    });
    const agent = createAgent({ model, hooks: [searching] });
    const { error } = await agent.run("What is wool?").result;
    expect(error).toMatchObject({ code: "model_rejected" });
    await agent.close();
  });
});
