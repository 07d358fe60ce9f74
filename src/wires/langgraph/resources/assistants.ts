// Agents as assistants. An assistant's id is a UUID derived from the agent's name, because some front ends accept only
// UUIDs. Requests may use the name instead.

import { createHash } from "node:crypto";
import { z } from "zod";
import type { AgentInfo } from "../../../agent/agents/registry.ts";
import { AppError } from "../../../agent/core/errors.ts";
import { boundedMap } from "../../../lib/bounded-schemas.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { isIn } from "../../../lib/search.ts";
import type { RouteServices } from "../../../server/http/services.ts";
import type { App } from "../../../server/http/validation.ts";
import { MAX_KEYS } from "../modes.ts";

const tags = ["langgraph"];

const Assistant = z
  .object({
    assistant_id: z.uuid(),
    graph_id: z.string().describe("Name of the agent."),
    name: z.string(),
    description: z.string().optional(),
    config: z.object({}),
    context: z.object({}),
    metadata: z.object({ created_by: z.literal("system") }),
    version: z.literal(1),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: "LangGraphAssistant" });
type Assistant = z.infer<typeof Assistant>;

const AssistantParams = z.object({ assistant_id: z.string().min(1).max(128) });
const Filter = z.looseObject({
  graph_id: z.string().max(128).nullish(),
  name: z.string().max(128).nullish(),
  metadata: boundedMap(z.string(), z.unknown(), MAX_KEYS).nullish(),
});
const SearchBody = Filter.extend({
  limit: z.int().min(1).max(1000).default(10),
  offset: z.int().min(0).max(100_000).default(0),
}).default({ limit: 10, offset: 0 });

export function assistantRoutes(app: App, { agents, version }: RouteServices): void {
  const all = () => agents.list().map(assistantOf);
  const named = (id: string) => assistantOf(agentNamed(agents, id));

  app.get(
    "/ok",
    {
      schema: {
        summary: "Check that the server responds",
        tags,
        response: { 200: z.object({ ok: z.boolean() }) },
      },
    },
    async () => ({ ok: true }),
  );

  app.get(
    "/info",
    {
      schema: {
        summary: "Get the server's version and features",
        tags,
        response: {
          200: z.object({ version: z.string(), flags: z.record(z.string(), z.boolean()) }),
        },
      },
    },
    async () => ({ version, flags: { assistants: true, crons: true, langsmith: false } }),
  );

  app.post(
    "/assistants/search",
    {
      schema: {
        summary: "List the agents as assistants",
        tags,
        body: SearchBody,
        response: { 200: z.array(Assistant) },
      },
    },
    async (request, reply) => {
      const { limit, offset, ...filter } = request.body;
      const found = all().filter((assistant) => fits(assistant, filter));
      reply.header("x-pagination-total", found.length);
      if (offset + limit < found.length) reply.header("x-pagination-next", offset + limit);
      return found.slice(offset, offset + limit);
    },
  );

  app.post(
    "/assistants/count",
    {
      schema: {
        summary: "Count the agents",
        tags,
        body: Filter.default({}),
        response: { 200: z.int() },
      },
    },
    async (request) => all().filter((assistant) => fits(assistant, request.body)).length,
  );

  app.get(
    "/assistants/:assistant_id",
    {
      schema: {
        summary: "Get an agent as an assistant",
        tags,
        params: AssistantParams,
        response: { 200: Assistant },
      },
    },
    async (request) => named(request.params.assistant_id),
  );

  const Nodes = z.array(z.looseObject({ id: z.string() }));
  const Edges = z.array(z.looseObject({ source: z.string(), target: z.string() }));
  app.get(
    "/assistants/:assistant_id/graph",
    {
      schema: {
        summary: "Get the loop of an agent as a graph",
        tags,
        params: AssistantParams,
        response: { 200: z.object({ nodes: Nodes, edges: Edges }) },
      },
    },
    async (request) => {
      named(request.params.assistant_id);
      return GRAPH;
    },
  );

  app.get(
    "/assistants/:assistant_id/schemas",
    {
      schema: {
        summary: "Get the JSON Schemas of an agent's input and output",
        tags,
        params: AssistantParams,
        response: { 200: z.looseObject({ graph_id: z.string() }) },
      },
    },
    async (request) => ({ graph_id: named(request.params.assistant_id).graph_id, ...SCHEMAS }),
  );

  app.get(
    "/assistants/:assistant_id/subgraphs",
    {
      schema: {
        summary: "List subgraphs (always empty)",
        tags,
        params: AssistantParams,
        response: { 200: z.object({}) },
      },
    },
    async (request) => {
      named(request.params.assistant_id);
      return {};
    },
  );
}

/** Returns the agent with this name or assistant id. Throws `not_found`. */
export function agentNamed(agents: RouteServices["agents"], id: string): AgentInfo {
  const agent = agents.list().find(({ name }) => name === id || assistantIdOf(name) === id);
  if (agent) return agent;
  const names = agents.list().map(({ name }) => `\`${name}\``);
  throw new AppError("not_found", `There is no assistant \`${id}\`. Use one of: ${names.join(", ")}.`);
}

/** Returns a UUID (version 5) of the agent's name. */
export function assistantIdOf(agent: string): string {
  const hash = createHash("sha1").update(NAMESPACE).update(agent).digest().subarray(0, 16);
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  return hash.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The namespace of assistant ids, which was generated once. */
const NAMESPACE = Buffer.from("6ba7b8219dad11d180b400c04fd430c8", "hex");

/** Agents have no timestamps, and this constant is the same on all replicas. */
const NO_TIME = new Date(0).toISOString();

const assistantOf = ({ name, description }: AgentInfo): Assistant => ({
  assistant_id: assistantIdOf(name),
  graph_id: name,
  name,
  config: {},
  context: {},
  metadata: { created_by: "system" },
  version: 1,
  created_at: NO_TIME,
  updated_at: NO_TIME,
  ...omitUndefined({ description }),
});

function fits(assistant: Assistant, { graph_id, name, metadata }: z.infer<typeof Filter>): boolean {
  const own: Readonly<Record<string, unknown>> = assistant.metadata;
  return (
    (!graph_id || [assistant.graph_id, assistant.assistant_id].includes(graph_id)) &&
    (!name || isIn(assistant.name, name)) &&
    Object.entries(metadata ?? {}).every(([key, value]) => own[key] === value)
  );
}

const GRAPH = {
  nodes: ["__start__", "agent", "tools", "__end__"].map((id) => ({ id, type: "runnable", data: { id } })),
  edges: [
    { source: "__start__", target: "agent" },
    { source: "agent", target: "tools", conditional: true },
    { source: "tools", target: "agent" },
    { source: "agent", target: "__end__", conditional: true },
  ],
};

const MESSAGES = { type: "object", properties: { messages: { type: "array", items: { type: "object" } } } };
const STATE = {
  type: "object",
  properties: {
    ...MESSAGES.properties,
    todos: { type: "array", items: { type: "object" } },
    files: { type: "object", additionalProperties: { type: "string" } },
  },
};
const SCHEMAS = {
  input_schema: MESSAGES,
  output_schema: STATE,
  state_schema: STATE,
  config_schema: null,
  context_schema: null,
};
