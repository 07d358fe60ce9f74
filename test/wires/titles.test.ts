// Lists show what a thread is about, for threads of every front end.

import { expect, test } from "vitest";
import { startServer } from "../support/server.ts";

const WORDS = "Plan a trip\nto Rome";
const user = { role: "user", content: WORDS };

/** The requests with which the front ends begin, the last of which starts a run. */
const BEGINNINGS: Readonly<Record<string, readonly (readonly [path: string, body: object])[]>> = {
  "the native API": [["/threads/t/runs", { input: WORDS }]],
  "a client that creates the thread first": [
    ["/threads", { id: "t" }],
    ["/threads/t/runs", { input: WORDS }],
  ],
  "the AI SDK": [
    [
      "/ai-sdk/assistant/chat",
      { id: "t", messages: [{ id: "u", role: "user", parts: [{ type: "text", text: WORDS }] }] },
    ],
  ],
  "OpenAI chat completions": [
    ["/v1/chat/completions", { model: "assistant", messages: [user], stream: true }],
  ],
  "OpenAI responses": [["/v1/responses", { model: "assistant", input: WORDS, stream: true }]],
  LangGraph: [
    ["/langgraph/threads", { thread_id: "t" }],
    ["/langgraph/threads/t/runs/wait", { assistant_id: "assistant", input: { messages: [user] } }],
  ],
  "AG-UI": [
    [
      "/ag-ui/agent/assistant/run",
      {
        threadId: "t",
        runId: "r",
        messages: [{ id: "u", ...user }],
        tools: [],
        context: [],
        state: {},
        forwardedProps: {},
      },
    ],
  ],
};

test.each(Object.entries(BEGINNINGS))(
  "a thread that %s starts is titled with its first words",
  async (_, requests) => {
    const { url } = await startServer({ script: [{ say: "With pleasure." }] });
    for (const [path, body] of requests) {
      const reply = await fetch(`${url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-openwebui-chat-id": "t" },
        body: JSON.stringify(body),
      });
      expect([reply.ok, await reply.text()]).toEqual([true, expect.anything()]);
    }
    const { items } = (await (await fetch(`${url}/threads`)).json()) as { items: { title?: string }[] };
    expect(items.map(({ title }) => title)).toEqual(["Plan a trip to Rome"]);
  },
);
