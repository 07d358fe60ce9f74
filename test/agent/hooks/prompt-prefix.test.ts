// A conversation whose requests are compared with the ones before: through tool calls, new runs and text that hooks add.

import { expect, test } from "vitest";
import { z } from "zod";
import type { AgentDefinition } from "../../../src/agent/core/agent.ts";
import type { Backend } from "../../../src/agent/core/backend.ts";
import type { Hook } from "../../../src/agent/core/hook.ts";
import type { ItemStore } from "../../../src/agent/core/items.ts";
import { userMessage } from "../../../src/agent/core/message.ts";
import type { ModelRequest } from "../../../src/agent/core/model.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { hooks } from "../../../src/agent/hooks/index.ts";
import { toWire as anthropic } from "../../../src/agent/models/anthropic/wire.ts";
import { dialectOf } from "../../../src/agent/models/openai/dialect.ts";
import { toWire as openai } from "../../../src/agent/models/openai/wire.ts";
import type { Turn } from "../../../src/agent/models/scripted.ts";
import { type Played, play } from "../../support/agent.ts";
import { family, lead } from "./family.ts";
import { listening } from "./listening.ts";
import { agentWith, made } from "./made.ts";
import { workspace } from "./workspace.ts";

const SYSTEM = ["identity", "instructions", "behavioral_constraints", "project_context"].map(
  (id) => ({ id, text: `The ${id}.`, cache: "static" }) as const,
);

/** Like the list of agents: it changes only when the agents do. */
const agents: Hook = {
  name: "agents",
  modifyRequest: (request) => ({
    ...request,
    system: [{ id: "available_agents", text: "coder, tester", cache: "dynamic" }, ...request.system],
  }),
};

const look = defineTool({
  ...{ name: "look", description: "Looks.", parameters: z.object({ at: z.string() }) },
  annotations: { readOnly: true },
  execute: ({ at }) => `${at}: ${"word ".repeat(20)}`,
});

for (const hook of hooks) await hook.load?.();
/** Beside the usual ones. */
const ON = ["notes", "tasks", "context", "loop_detection", "stall_detection", "failure_reflection"];

function all(agent: Partial<AgentDefinition>, services: { backend: Backend; items: ItemStore }): Hook[] {
  const options = (name: string) => (name === "context" ? { text: "We build with Node 24." } : {});
  const active = hooks.filter(
    ({ name, ...hook }) => ON.includes(name) || hook.activeByDefault(agentWith(agent)),
  );
  return [agents, ...active.map((hook) => made(hook, { agent, options: options(hook.name), ...services }))];
}

const call = (tool: string, args: Record<string, unknown>) => ({ tool, args });
const TURNS: Turn[][] = [
  [
    { say: "I look.", call: [call("look", { at: "a" }), call("look", { at: "b" })] },
    { call: [call("load_skill", { name: "csv" }), call("list_notes", {})] },
    { call: [call("look", { at: "nowhere" }), call("no_such_tool", {})] },
    { call: [call("write_note", { name: "plan", text: "x" }), call("write_todos", { todos: [] })] },
    { say: "Done." },
  ],
  [{ call: [call("look", { at: "c" })] }, { say: "Done again." }],
  [{ say: "You are welcome." }],
];

/** Every request of three runs on one thread. */
async function conversation(): Promise<ModelRequest[]> {
  const services = {
    items: await family(),
    backend: await workspace({
      "skills/csv/SKILL.md": "---\nname: csv\ndescription: Reads CSV\n---\nUse a parser.",
      "skills/style/SKILL.md": "Be brief.",
      "AGENTS.md": "Ada likes tea.",
    }),
  };
  const agent: Partial<AgentDefinition> = {
    backend: { type: "local" },
    skills: { paths: ["skills"], include: [], exclude: [] },
    memory: { paths: ["AGENTS.md"] },
  };
  const requests: ModelRequest[] = [];
  let last: Played | undefined;
  for (const [nth, turns] of TURNS.entries()) {
    const { model, asked } = listening(turns);
    const before = last ? { messages: last.messages, state: last.state } : {};
    last = await play({
      ...{ model, say: null, tools: [look], system: SYSTEM, hooks: all(agent, services) },
      ...{ backend: services.backend, input: { ...lead, ...before, input: [userMessage(`Task ${nth}.`)] } },
    });
    expect(last.outcome.status).toBe("success");
    requests.push(...asked);
  }
  return requests;
}

const WIRES: Record<string, (request: ModelRequest) => object> = {
  anthropic: (request) =>
    anthropic(request, { model: "claude-sonnet-4-5", settings: {}, keepsOwnIds: false }).params,
  openai: (request) =>
    openai(request, { model: "gpt-5", settings: {}, dialect: dialectOf("https://api.openai.com/v1") }),
};

test.each(Object.entries(WIRES))(
  "requests to %s begin with the bytes of the one before, from turn to turn and from run to run",
  async (_, toWire) => {
    const requests = await conversation();
    expect(requests).toHaveLength(TURNS.flat().length);
    let before = "";
    for (const request of requests) {
      const { messages, ...head } = toWire(request) as { messages: unknown };
      const json = JSON.stringify({ ...head, messages });
      const now = json.replaceAll(',"cache_control":{"type":"ephemeral"}', "");
      expect(now.slice(0, before.length)).toBe(before);
      expect(now.length).toBeGreaterThan(before.length);
      before = now.replace(/[\]}]+$/, "");
    }
  },
);

test("an agent's prompt contains the texts of all its hooks, with the most constant ones first", async () => {
  const [request] = await conversation();
  expect(request?.system.map(({ id, cache }) => `${cache} ${id}`)).toEqual([
    ...["static identity", "static notes_protocol", "static instructions", "static behavioral_constraints"],
    ...["static project_context", "semi skills", "semi available_skills", "semi memory"],
    "dynamic available_agents",
  ]);
});
