// What the log says of each run that ends: one line, in which most questions of a day have their answer.

import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { dataOf } from "../support/drain.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";
import { cast, completing, delegating, TEAM } from "../support/team.ts";

const PROMPT = "my password is swordfish";

async function logged(options: ServerOptions = {}) {
  const lines: Record<string, unknown>[] = [];
  const logger = pino(
    { level: "info" },
    {
      write(line: string) {
        expect(line).not.toContain(PROMPT);
        lines.push(JSON.parse(line));
      },
    },
  );
  const { url } = await startServer({ ...options, logger });
  return { url, lines: (msg: string) => lines.filter((each) => each.msg === msg) };
}

test("a run that ends leaves one line, with its model, times, tokens and tools", async () => {
  const script = [
    { call: [{ tool: "write_todos", args: { todos: [] } }, { tool: "no_such_tool" }] },
    { say: "Done." },
  ];
  const { url, lines } = await logged({ script });
  await (await post(`${url}/threads/t1/runs`, { input: PROMPT })).ended();
  await expect.poll(() => lines("run ended")).toHaveLength(1);
  expect(lines("run ended")[0]).toMatchObject({
    level: 30,
    ...{ thread_id: "t1", tenant: "default", user: "default", agent: "assistant", attempt: 1 },
    ...{ run_id: expect.stringMatching(/^run_/), request_id: expect.stringMatching(/^req_/) },
    ...{ status: "success", stop_reason: "end_turn", model: "scripted:test" },
    ...{ duration_ms: expect.any(Number), waited_ms: expect.any(Number), first_token_ms: expect.any(Number) },
    ...{ model_calls: 2, model_failures: 0, tools: { write_todos: 1, no_such_tool: 1 }, tool_failures: 1 },
    tokens: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
  });
});

test("a delegating run and its subagent's run leave a line each, with one request id", async () => {
  const script = cast({
    lead: [delegating({ agent: "coder", task: "Write it" }), { say: "Done." }],
    coder: [completing("It is written.")],
  });
  const { url, lines } = await logged({ agents: TEAM, script });
  await (await post(`${url}/threads/t1/runs`, { input: PROMPT }, { "x-request-id": "one" })).ended();
  await expect.poll(() => lines("run ended").map(({ agent }) => agent)).toEqual(["coder", "lead"]);
  expect(lines("run ended").map(({ request_id }) => request_id)).toEqual(["one", "one"]);
});

describe("an unavailable MCP server", () => {
  const program = JSON.stringify(fileURLToPath(new URL("../fixtures/mcp/dying.sh", import.meta.url)));
  const agents = (tools: string) => `
agents: { assistant: { model: "scripted:test", tools: ${tools} } }
mcp_servers: { files: { command: sh, args: [${program}], env: { API_KEY: sk-proj-0123456789 } } }`;

  test("causes a warning in the log with its last output, without its secrets", async () => {
    const { lines } = await logged({ agents: agents('["mcp__files__*"]') });
    const message = "MCP server `files` ended (exit code 3); will retry";
    await expect.poll(() => lines(message).length).toBeGreaterThan(0);
    const said = lines(message)[0]?.said as string[];
    expect(said).toHaveLength(10);
    expect(said.at(-1)).toBe("fatal: SELF_SIGNED_CERT_IN_CHAIN for key ***");
  });

  test("causes a warning in each run whose agent names its tools, and in no other", async () => {
    const { url, lines } = await logged({ agents: agents('["mcp__files__*"]') });
    await expect
      .poll(() => lines("MCP server `files` ended (exit code 3); will retry").length)
      .toBeGreaterThan(0);
    const events = await (await post(`${url}/threads/t1/runs`, { input: PROMPT })).ended();
    expect(dataOf(events, "warning")).toEqual([
      {
        code: "mcp_unavailable",
        message: "MCP server `files` ended (exit code 3). This run can use its tools once it answers.",
      },
    ]);
    const other = await logged({ agents: agents("[write_todos]") });
    const quiet = await (await post(`${other.url}/threads/t1/runs`, { input: PROMPT })).ended();
    expect(dataOf(quiet, "warning")).toEqual([]);
  });
});
