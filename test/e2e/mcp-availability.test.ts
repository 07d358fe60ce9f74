// MCP servers that are slow, or away for a while: what the runs meanwhile can call.

import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import { dataOf } from "../support/drain.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { post } from "../support/sse.ts";

const PROGRAM = fileURLToPath(new URL("../fixtures/mcp/hostile.ts", import.meta.url));
const SERVE = `exec '${process.execPath}' '${PROGRAM}' normal`;
const echo = { call: [{ tool: "mcp__x__echo", args: { text: "hello" } }] };

/** A server that runs `script` in a shell. `$GATE` is a file that the test makes. */
async function withServer(script: string) {
  const gate = join(await temporaryFolder(), randomUUID());
  const agents = `
agents: { assistant: { model: "scripted:test", tools: ["mcp__x__*", "open"] } }
mcp_servers: { x: { command: sh, args: ["-c", ${JSON.stringify(script)}], env: { GATE: ${JSON.stringify(gate)} } } }`;
  let url = "";
  const listed = async () => {
    const agent = (await (await fetch(`${url}/agents/assistant`)).json()) as { tools: string[] };
    return agent.tools.includes("mcp__x__echo");
  };
  const open = defineTool({
    name: "open",
    description: "Lets the server answer.",
    parameters: z.object({}),
    annotations: { requiresPermission: false },
    async execute() {
      await writeFile(gate, "");
      await expect.poll(listed).toBe(true);
      return "open";
    },
  });
  const start = async (turns: readonly object[]) => {
    ({ url } = await startServer({ agents, tools: [open], script: turns as never }));
    return url;
  };
  return { gate, start };
}

test("a run waits for a server that has not listed its tools yet", async () => {
  const { gate, start } = await withServer(
    `touch $GATE.started; until [ -e $GATE ]; do sleep 0.1; done; ${SERVE}`,
  );
  const url = await start([echo, { say: "Done." }]);
  const running = post(`${url}/threads/t/runs`, { input: "go" });
  running.catch(() => {});
  await expect.poll(() => existsSync(`${gate}.started`)).toBe(true);
  await writeFile(gate, "");
  const events = await (await running).ended();
  expect(dataOf(events, "on_tool_end")).toMatchObject([{ output: '{"text":"hello"}' }]);
  expect(dataOf(events, "warning")).toEqual([]);
});

test("a call to an unavailable server fails with a readable error, and its tools are offered as soon as it is available", async () => {
  const { start } = await withServer(`[ -e $GATE ] || exit 3; ${SERVE}`);
  const url = await start([echo, { call: [{ tool: "open" }] }, echo, { say: "Done." }]);
  const events = await (await post(`${url}/threads/t/runs`, { input: "go" })).ended();
  expect(dataOf(events, "warning")).toMatchObject([{ code: "mcp_unavailable" }]);
  expect(dataOf(events, "on_tool_end")).toMatchObject([
    { error: "MCP server `x` is not available yet: it ended (exit code 3). Try again later." },
    { output: "open" },
    { output: '{"text":"hello"}' },
  ]);
});

test("a call to a tool that no configured server has is an error, not an outage", async () => {
  const { start } = await withServer("exit 3");
  const url = await start([{ call: [{ tool: "mcp__y__echo" }] }, { say: "Done." }]);
  const events = await (await post(`${url}/threads/t/runs`, { input: "go" })).ended();
  expect(dataOf(events, "on_tool_end")[0]?.error).toMatch(/^There is no tool `mcp__y__echo`/);
});
