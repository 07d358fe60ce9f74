// The address at which a person connects an account, in the protocols of other front ends.

import type { ElicitRequest } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { deployment, serve } from "../support/account-server.ts";
import { connectAt } from "../support/connecting.ts";
import { connected, outcomeOf, run } from "../wires/mcp/client.ts";

const HELLO = [{ role: "user", content: "look" }];

const ON_WIRES: readonly [string, string, object][] = [
  ["OpenAI chat", "/v1/chat/completions", { model: "assistant", messages: HELLO }],
  ["OpenAI responses", "/v1/responses", { model: "assistant", input: "look" }],
  [
    "AG-UI",
    "/ag-ui/agent/assistant/run",
    { threadId: "t", runId: "r", messages: [{ id: "m", ...HELLO[0] }] },
  ],
  [
    "AI SDK",
    "/ai-sdk/assistant/chat",
    { id: "t", messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "look" }] }] },
  ],
  [
    "LangGraph",
    "/langgraph/runs/wait",
    { assistant_id: "assistant", input: { messages: [{ type: "human", content: "look" }] } },
  ],
  [
    "A2A",
    "/a2a/assistant",
    {
      ...{ jsonrpc: "2.0", id: 1, method: "SendMessage" },
      params: { message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "look" }] } },
    },
  ],
];

const MORE_HEADERS = { "x-conversation-id": "c", "a2a-version": "1.0" };

test.each(ON_WIRES)("a front end of %s receives the address with the question", async (_, path, body) => {
  const parts = await deployment();
  const { as, url } = await serve(parts, {
    config: { wires: ["openai", "ag-ui", "ai-sdk", "langgraph", "a2a"] },
  });
  const response = await fetch(url + path, {
    method: "POST",
    headers: { ...as("ada").headers, ...MORE_HEADERS, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const [, address = ""] = /(http:[^\s"\\]+\/oauth\/start\?key=[\w-]+)/.exec(await response.text()) ?? [];
  expect((await connectAt(address)).text).toContain("The account is connected");
});

test.each([[{ url: {} }], [{ form: {}, url: {} }]])(
  "an MCP client that opens addresses (%j) is sent to this one within its call, and told when the person has finished",
  async (elicitation) => {
    const parts = await deployment();
    const { as, url } = await serve(parts, { config: { wires: ["mcp"] } });
    const asked: ElicitRequest["params"][] = [];
    const visits: Promise<unknown>[] = [];
    const client = await connected(url, {
      ...{ headers: as("ada").headers, elicitation },
      ask({ params }) {
        asked.push(params);
        // The browser must not end the process if the server closes before it returns.
        if (params.mode === "url") visits.push(connectAt(params.url).catch(String));
        return { action: "accept" };
      },
    });
    const finished: object[] = [];
    client.setNotificationHandler(
      "notifications/elicitation/complete",
      ({ params }) => void finished.push(params),
    );
    const outcome = outcomeOf(await client.callTool(run("look")));
    expect(outcome).toMatchObject({ status: "success", text: "done" });
    expect(await as("ada").messages(outcome.thread_id)).toContain("the calendar of ada");
    expect(asked).toMatchObject([{ mode: "url", message: expect.stringContaining("your account") }]);
    const [id] = asked.map((each) => each.mode === "url" && each.elicitationId);
    await expect.poll(() => finished).toEqual([{ elicitationId: id }]);
    expect(await Promise.all(visits)).toMatchObject([{ status: 200 }]);
    expect(finished).toHaveLength(1);
  },
);

test("an MCP client whose person does not want to go to the address lets the agent know", async () => {
  const parts = await deployment();
  const { as, url } = await serve(parts, { config: { wires: ["mcp"] } });
  const client = await connected(url, {
    ...{ headers: as("ada").headers, elicitation: { url: {} } },
    ask: () => ({ action: "decline" }),
  });
  const outcome = outcomeOf(await client.callTool(run("look")));
  expect(outcome).toMatchObject({ status: "success", text: "done" });
  expect(await as("ada").messages(outcome.thread_id)).toContain("was not connected");
});
