// MCP servers that want their user to open an address before a call.

import { expect, test } from "vitest";
import type { Turn } from "../../src/agent/models/scripted.ts";
import { createClient } from "../../src/client/client.ts";
import { answer, overHttp } from "../agent/tools/mcp/over-http.ts";
import { startServer } from "../support/server.ts";

const ADDRESS = "https://notes.example.com/allow";
const SCRIPT: readonly Turn[] = [{ call: [{ tool: "mcp__notes__list", args: {} }] }, { say: "done" }];

/** An agent whose tool belongs to a server that wants its user to open `url` until `state.isOpened`. */
async function started({ url = ADDRESS } = {}) {
  const state = { isOpened: false, calls: 0 };
  const notes = await overHttp({
    list({ id, response }) {
      state.calls++;
      if (state.isOpened) return answer(response, id, { content: [{ type: "text", text: "all notes" }] });
      const data = { elicitations: [{ mode: "url", elicitationId: "e1", url, message: "Allow the notes." }] };
      const error = { code: -32042, message: "Open an address first.", data };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, error }));
    },
  });
  const agents = `
mcp_servers:
  notes: { url: "${notes.url}", trust_annotations: true }
agents:
  assistant: { model: "scripted:test", tools: ["mcp__notes__*"], hooks: { todos: false }, permissions: { mode: bypass } }
`;
  const server = await startServer({ agents, script: SCRIPT });
  const client = createClient({ baseUrl: server.url });
  const run = async () => {
    for await (const _ of client.run("t", { input: "look" }));
    return (await client.interrupts("t"))[0];
  };
  const decide = async (decision: "approve" | "deny", asked: Awaited<ReturnType<typeof run>>) => {
    const { id = "", run_id = "" } = asked ?? {};
    for await (const _ of client.resume("t", run_id, [{ id, decision }]));
  };
  const messages = async () => JSON.stringify(await client.threads.messages("t"));
  return { state, client, run, decide, messages };
}

test("a server that wants its user to open an address gets the call again when the user says that it is done", async () => {
  const { state, client, run, decide, messages } = await started();
  const asked = await run();
  expect(asked).toMatchObject({ kind: "connect", name: "mcp__notes__list" });
  expect(asked?.prompt).toContain(ADDRESS);
  expect(asked?.prompt).toContain("Allow the notes.");
  state.isOpened = true;
  await decide("approve", asked);
  expect(await messages()).toContain("all notes");
  expect(state.calls).toBe(2);
  expect(await client.interrupts("t")).toEqual([]);
});

test("a user who does not want to open it lets the agent know, and the server is not called again", async () => {
  const { state, run, decide, messages } = await started();
  const asked = await run();
  state.isOpened = true;
  await decide("deny", asked);
  expect(await messages()).toContain("did not open the address");
  expect(state.calls).toBe(1);
});

test("a server that asks again gets no third call, and the agent reads why", async () => {
  const { state, client, run, decide, messages } = await started();
  await decide("approve", await run());
  expect(await messages()).toContain("still asks its user to open an address");
  expect(state.calls).toBe(2);
  expect(await client.interrupts("t")).toEqual([]);
});

test.each([
  ["without TLS", "http://notes.example.com/allow"],
  ["that names another host before its own", "https://github.com@notes.example.com/allow"],
  ["that is longer than 2000 characters", `${ADDRESS}?${"a".repeat(2000)}`],
])("no one is sent to an address %s", async (_, url) => {
  const { run, messages } = await started({ url });
  expect(await run()).toBeUndefined();
  expect(await messages()).toContain("returned an error: Open an address first.");
});
