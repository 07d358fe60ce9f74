import { expect, test } from "vitest";
import { createAgent, scriptedModel, webTools } from "../../../src/index.ts";
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
