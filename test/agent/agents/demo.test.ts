// What is shipped, with the real rooms and an environment that holds nothing.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createRegistry } from "../../../src/agent/agents/registry.ts";
import { hooks } from "../../../src/agent/hooks/index.ts";
import { createModel, modelDoubt } from "../../../src/agent/models/index.ts";
import { McpServerDefinitions } from "../../../src/agent/tools/mcp/options.ts";
import { BackendOptions } from "../../../src/sandbox/index.ts";
import { type Played, play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { newPool } from "../../support/pool.ts";

const registry = (env: Record<string, string>) =>
  createRegistry({
    file: "agents.yaml",
    env,
    catalogue: {
      ...{ hooks, tools: () => [], mcpServers: McpServerDefinitions, backends: BackendOptions },
      createModel: (spec) => createModel(spec, env),
      modelDoubt: (spec) => modelDoubt(spec, env),
    },
  });

async function playDemo(): Promise<Played> {
  const dataDir = await mkdtemp(join(tmpdir(), "skein-demo-"));
  const pool = newPool({ dataDir });
  try {
    const agents = await registry({});
    const definition = agents.find(undefined);
    if (!definition.backend) throw new Error("The shipped agent has no backend.");
    const backend = await pool.get({ tenant: "acme", user: "ada" }, definition.backend);
    const { model, hooks, system } = await agents.build(definition, { backend }, {});
    return await play({ model, hooks, system, backend, say: "What can you do?" });
  } finally {
    await pool.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

let demo: Played;
beforeAll(async () => {
  demo = await playDemo();
});

test("the shipped agent is the demo if no key is set, and a real model otherwise", async () => {
  const model = async (env: Record<string, string>) => (await registry(env)).list()[0]?.model;
  expect(await model({})).toBe("scripted:demo");
  expect(await model({ ANTHROPIC_API_KEY: "k" })).toBe("anthropic:claude-sonnet-4-5");
  expect(await model({ OPENAI_API_KEY: "k" })).toBe("openai:gpt-5-mini");
});

test("the demo plans, writes, reads, lists and runs, and every call succeeds", () => {
  expect(demo.outcome.status).toBe("success");
  const ends = dataOf(demo.events, "on_tool_end");
  expect(ends.filter((end) => end.error !== undefined)).toEqual([]);
  const calls = demo.events.flatMap((event) => (event.event === "on_tool_start" ? [event.name] : []));
  expect(calls).toEqual(["write_todos", "write_file", "read_file", "ls", "execute", "write_todos"]);
  expect(ends.map((end) => end.output).join("\n")).toContain("their sum is 385");
});

test("the demo greets with the user's words, finishes its plan and explains how to use a real model", () => {
  const said = demo.messages.flatMap((message) => (message.role === "assistant" ? [message.content] : []));
  expect(said[0]).toContain("What can you do?");
  expect(said.at(-1)).toContain("ANTHROPIC_API_KEY or OPENAI_API_KEY");
  const todos = demo.state.get("todos");
  expect(todos).toHaveLength(3);
  expect(todos).toEqual(Array(3).fill(expect.objectContaining({ status: "done" })));
});
