// The `tools:` list of an agent: which of the built-in tools the model is offered, and can call.

import { expect, test } from "vitest";
import type { ModelRequest } from "../../src/core/model.ts";
import type { Turn } from "../../src/models/scripted.ts";
import { dataOf } from "../support/drain.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

const FILES = ["edit_file", "execute", "glob", "grep", "ls", "read_file", "write_file"];
const STANDARD = [...FILES, "write_todos"];

const agentWith = (fields: string) =>
  `agents: { assistant: { model: "scripted:test", backend: { type: local }, ${fields} } }`;

/** A server whose model plays `turns`, then says "ok". */
async function serve(agents: string, turns: readonly Turn[] = []) {
  const asked: ModelRequest[] = [];
  const left = [...turns];
  const { url } = await startServer({
    agents,
    script: (request) => {
      asked.push(request);
      return left.shift() ?? { say: "ok" };
    },
  });
  const run = async () => (await post(`${url}/threads/t1/runs`, { input: "go" })).ended();
  const offered = (index = -1) => asked.at(index)?.tools.map(({ name }) => name);
  return { url, asked, run, offered };
}

test.each([
  ["", STANDARD],
  ["tools: []", STANDARD],
  ["tools: [current_datetime]", ["current_datetime", ...STANDARD]],
  ["tools: [read_file, glob, grep]", ["glob", "grep", "read_file"]],
  ["tools: [read_file, current_datetime]", ["current_datetime", "read_file"]],
  ['tools: ["*_file"]', ["edit_file", "read_file", "write_file"]],
  ["tools: [write_todos]", ["write_todos"]],
  ['tools: ["*"]', ["ask_user", "current_datetime", ...STANDARD]],
])("an agent with a backend and `%s` is offered exactly its tools", async (fields, expected) => {
  const { run, offered } = await serve(agentWith(fields));
  await run();
  expect(offered()).toEqual(expected);
});

test("a built-in tool that an agent's list leaves out cannot be called either", async () => {
  const call = { id: "c1", tool: "execute", args: { command: "echo hello" } };
  const { run } = await serve(agentWith("tools: [read_file, glob, grep]"), [{ call: [call] }]);
  const [end] = dataOf(await run(), "on_tool_end");
  expect(end).toMatchObject({
    output: "",
    error: "There is no tool `execute`. Use one of: glob, grep, read_file.",
  });
});

const team = (lead: string, coder: string) => `
defaults: { model: "scripted:test", backend: { type: local } }
agents:
  lead: { subagents: [coder], ${lead} }
  coder: { description: Writes code, ${coder} }`;
const GIVEN: Turn = { call: [{ tool: "task", args: { agent: "coder", task: "Look", context: "None" } }] };

test("a subagent has exactly the built-in tools of its own list, and task_complete to report with", async () => {
  const { run, offered } = await serve(team("tools: []", "tools: [read_file]"), [GIVEN]);
  await run();
  expect(offered(1)).toEqual(["read_file", "task_complete"]);
});

test("an agent that is left one way to give tasks is told of no other", async () => {
  const { run, offered, asked } = await serve(team("tools: [task, read_file]", "tools: []"));
  await run();
  expect(offered()).toEqual(["read_file", "task"]);
  const told = asked[0]?.system.map(({ text }) => text).join("\n");
  expect(told).toContain("You may give tasks to these agents, with task:");
  expect(told).not.toMatch(/delegate|start_task/);
});

test("an agent whose list leaves no way to give tasks is not told of other agents", async () => {
  const { run, offered, asked } = await serve(team("tools: [read_file]", "tools: []"));
  await run();
  expect(offered()).toEqual(["read_file"]);
  expect(JSON.stringify(asked[0]?.system)).not.toContain("coder");
});
