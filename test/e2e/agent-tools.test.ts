// The `tools:` list of an agent: which of the built-in tools the model is offered, and can call.

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { ModelRequest } from "../../src/agent/core/model.ts";
import { defineTool } from "../../src/agent/core/tool.ts";
import type { Turn } from "../../src/agent/models/scripted.ts";
import { createClient } from "../../src/client/client.ts";
import { dataOf } from "../support/drain.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

const FILES = ["edit_file", "execute", "glob", "grep", "ls", "read_file", "write_file"];
const STANDARD = [...FILES, "write_todos"];

const agentWith = (fields: string) => `
defaults: { model: "scripted:test" }
agents:
  assistant: { backend: { type: local }, ${fields} }`;

const send = (url: string, method: string, body: object) =>
  fetch(url, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

/** A server whose model plays `turns`, then says "ok". */
async function serve(agents: string, turns: readonly Turn[] = [], config: object = {}) {
  const asked: ModelRequest[] = [];
  const left = [...turns];
  const { url, dir } = await startServer({
    agents,
    config,
    script: (request) => {
      asked.push(request);
      return left.shift() ?? { say: "ok" };
    },
  });
  const run = async () => (await post(`${url}/threads/t1/runs`, { input: "go" })).ended();
  const offered = (index = -1) => asked.at(index)?.tools.map(({ name }) => name);
  return { url, dir, asked, run, offered };
}

test.each([
  ["", STANDARD],
  ["tools: []", []],
  ["tools: [current_datetime]", ["current_datetime", ...STANDARD]],
  ["tools: [read_file, glob, grep]", ["glob", "grep", "read_file"]],
  ["tools: [read_file, current_datetime]", ["current_datetime", "read_file"]],
  ['tools: ["*_file"]', ["edit_file", "read_file", "write_file"]],
  ["tools: [write_todos]", ["write_todos"]],
  ['tools: ["*"]', ["ask_user", "current_datetime", ...STANDARD, "web_fetch"].sort()],
])("an agent with a backend and `%s` gets exactly its tools", async (fields, expected) => {
  const { run, offered } = await serve(agentWith(fields));
  await run();
  expect(offered()).toEqual(expected);
});

test("a built-in tool that an agent's list omits cannot be called either", async () => {
  const call = { id: "c1", tool: "execute", args: { command: "echo hello" } };
  const { run } = await serve(agentWith("tools: [read_file, glob, grep]"), [{ call: [call] }]);
  const [end] = dataOf(await run(), "on_tool_end");
  expect(end).toMatchObject({
    output: "",
    error: "There is no tool `execute`. Use one of: glob, grep, read_file.",
  });
});

test("a run can set whether its model calls tools, and an invalid choice is refused", async () => {
  const { url, asked } = await serve(agentWith("tools: [read_file]"));
  const run = (tool_choice: unknown) => send(`${url}/threads/t1/runs`, "POST", { input: "go", tool_choice });
  await (await run({ name: "read_file" })).text();
  expect(asked[0]?.settings).toEqual({ tool_choice: { name: "read_file" } });
  const refused = await run("sometimes");
  expect(refused.status).toBe(400);
  expect(await refused.text()).toContain("tool_choice: must be `auto`, or `none`, or `required`, or a map");
});

test("a tool knows its agent, its step and what clients have written to the thread", async () => {
  const known: unknown[] = [];
  const look = defineTool({
    ...{ name: "look", description: "Looks.", parameters: z.object({}) },
    execute(_args, _call, { agent, description, step, threadMetadata }) {
      known.push({ agent, description, step, threadMetadata });
      return "seen";
    },
  });
  const { url } = await startServer({
    agents: "agents: { helper: { model: 'scripted:test', description: Helps, tools: [look] } }",
    tools: [look],
    script: [{ call: [{ tool: "look" }] }, { call: [{ tool: "look" }] }, { say: "ok" }],
  });
  await send(`${url}/threads`, "POST", { id: "t1", metadata: { ticket: 7 } });
  await (await post(`${url}/threads/t1/runs`, { input: "go" })).ended();
  const seen = { agent: "helper", description: "Helps", threadMetadata: { ticket: 7 } };
  expect(known).toEqual([
    { ...seen, step: 1 },
    { ...seen, step: 2 },
  ]);
});

const team = (lead: string, coder: string) => `
defaults: { model: "scripted:test", backend: { type: local } }
agents:
  lead: { subagents: [coder], ${lead} }
  coder: { description: Writes code, ${coder} }`;
const GIVEN: Turn = { call: [{ tool: "task", args: { agent: "coder", task: "Look", context: "None" } }] };

test("a subagent has exactly the built-in tools in its own list, and task_complete for its report", async () => {
  const { run, offered } = await serve(team("", "tools: [read_file]"), [GIVEN]);
  await run();
  expect(offered(1)).toEqual(["read_file", "task_complete"]);
});

test("an agent whose list leaves one way to delegate learns of no other", async () => {
  const { run, offered, asked } = await serve(team("tools: [task, read_file]", ""));
  await run();
  expect(offered()).toEqual(["read_file", "task"]);
  const told = asked[0]?.system.map(({ text }) => text).join("\n");
  expect(told).toContain("You can give tasks to these agents with task:");
  expect(told).not.toMatch(/delegate|start_task/);
});

test("an agent whose list leaves no way to delegate learns nothing about other agents", async () => {
  const { run, offered, asked } = await serve(team("tools: [read_file]", ""));
  await run();
  expect(offered()).toEqual(["read_file"]);
  expect(JSON.stringify(asked[0]?.system)).not.toContain("coder");
});

describe("GET /agents/:name", () => {
  const shown = async (url: string, name = "assistant") =>
    ((await (await fetch(`${url}/agents/${name}`)).json()) as { tools: string[] }).tools;

  test.each([
    [""],
    ["tools: [read_file, current_datetime]"],
    ["hooks: { notes: true, tasks: true, todos: false }"],
    ["subagents: [other]"],
    ["subagents: [other], max_delegation_depth: 0"],
    ["permissions: { mode: bypass, rules: [{ deny: '*', category: execute }, { deny: 'write_*' }] }"],
    ['tools: ["*"], subagents: [other]'],
  ])("lists the tools that the model of an agent with `%s` gets", async (fields) => {
    const { url, dir, run, offered } = await serve(`${agentWith(fields)}\n  other: {}`);
    const before = await shown(url);
    expect(await readdir(join(dir, "data")).catch(() => [])).not.toContain("workspaces");
    await run();
    expect(before).toEqual(offered());
  });

  test("lists load_skill for an agent with skills", async () => {
    const { url, run, offered } = await serve(agentWith("skills: { paths: [skills] }"));
    const skill = "---\nname: greet\ndescription: How to greet\n---\nSay hello.\n";
    const written = await fetch(`${url}/backend/files/skills/greet/SKILL.md`, { method: "PUT", body: skill });
    expect(written.ok).toBe(true);
    await run();
    expect(offered()).toContain("load_skill");
    expect(await shown(url)).toEqual(offered());
  });

  test("lists the tenant's tools, without those that the user has turned off", async () => {
    const { url, run, offered } = await serve(agentWith('tools: ["freight_*"]'));
    const tool = { name: "freight_quote", description: "A quote.", parameters: { type: "object" } };
    await send(`${url}/tools`, "POST", { ...tool, callback_url: "https://tools.example.com/" });
    await send(`${url}/agents/assistant/overrides`, "PATCH", { hooks: { todos: false } });
    const expected = [...FILES, "freight_quote"].sort();
    expect(await shown(url)).toEqual(expected);
    await run();
    expect(offered()).toEqual(expected);
    const { items } = (await (await fetch(`${url}/agents`)).json()) as { items: { tools: string[] }[] };
    expect(items[0]?.tools).toEqual(expected);
  });

  test("starts no sandbox for this, and needs none", async () => {
    const backend = "{ type: docker, image: no-such-image:1 }";
    const docker = { host: "unix:///nowhere/docker.sock" };
    const agents = `agents: { assistant: { model: "scripted:test", backend: ${backend} } }`;
    const { url } = await serve(agents, [], { backends: { docker } });
    expect(await shown(url)).toEqual(STANDARD);
    const status = (await (await fetch(`${url}/backend`)).json()) as { status?: string };
    expect(status.status).not.toMatch(/running|starting/);
  });
});

test("users see tools as the model does, and only admins and operators see the prompt", async () => {
  const { url } = await startServer({
    agents: agentWith('system_prompt: "Be careful."'),
    config: { auth: { scheme: "header", trusted_proxies: ["127.0.0.0/8"] } },
  });
  const as = (scopes: string) =>
    createClient({
      baseUrl: url,
      headers: { "x-skein-tenant": "acme", "x-skein-user": "ada", "x-skein-scopes": scopes },
    });
  const user = as("read,run");
  const tools = await user.agents.tools("assistant");
  expect(tools.map(({ name }) => name)).toEqual((await user.agents.get("assistant")).tools);
  const ls = tools.find(({ name }) => name === "ls");
  expect(ls).toMatchObject({ read_only: true, parameters: { type: "object" } });
  expect(ls?.description).toMatch(/\w/);

  await expect(user.agents.prompt("assistant")).rejects.toMatchObject({ status: 403 });
  expect(await as("admin").agents.prompt("assistant")).toEqual([{ id: "instructions", text: "Be careful." }]);
  await expect(as("admin").agents.prompt("unknown")).rejects.toMatchObject({ status: 404 });
  await expect(user.agents.tools("unknown")).rejects.toMatchObject({ status: 404 });
});
