// The schema of agents.yaml. It validates the file and, as JSON Schema, supports editors.

import { z } from "zod";
import { SELDOM } from "../../lib/check.ts";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { AgentFields, ModelSpec } from "../core/agent.ts";
import { messageOf } from "../core/errors.ts";
import type { HookDefinition } from "../core/hook.ts";
import { PluginList } from "../core/plugin-ref.ts";
import type { Catalogue } from "./catalogue.ts";
import { isPattern, settingOf, toolMatcher } from "./tool-choice.ts";

const AgentName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
    "must be 1 to 64 characters from A-Z, a-z, 0-9, _ and -, and begin with a letter or a digit",
  );

const ModelName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
    "must be 1 to 64 characters from A-Z, a-z, 0-9, _, . and -, and begin with a letter or a digit",
  );

type Parts = Pick<Catalogue, "backends" | "hooks" | "tools" | "mcpServers" | "schedules">;

export type AgentSchema = ReturnType<typeof agentSchema>;

/** Returns the schemas of the whole file: several agents, or one agent with a name. */
export function fileSchemas(parts: Parts) {
  const agent = agentSchema(parts);
  const shared = {
    plugins: PluginList.optional(),
    models: z
      .record(ModelName, ModelSpec)
      .optional()
      .describe("Your own names for models. Use them wherever a model is named: in agents, runs and hooks."),
    mcp_servers: parts.mcpServers
      .optional()
      .describe("MCP servers by name. Agents use their tools as `mcp__<server>__<tool>`."),
    schedules: (parts.schedules ?? z.never()).optional(),
  };
  return {
    agent,
    several: agentsSchema(agent).extend(shared),
    single: agent.extend({ ...shared, name: AgentName }),
  };
}

/** Returns the schema of one agent, without its name. */
function agentSchema({ backends, hooks, tools }: Parts) {
  return AgentFields.extend({
    model: ModelSpec.optional().describe(
      "Model: `provider:model` or a map. Default: a model with a key in the environment, otherwise the built-in demo.",
    ),
    backend: backends
      .optional()
      .describe("Backend for the agent's files and commands. Without one, the agent has neither."),
    tools: z
      .array(toolName(tools().map(({ name }) => name)))
      .optional()
      .describe(
        "Names and globs of tools. If the list is empty or names a built-in tool, the agent gets only the built-in tools that it names.",
      ),
    permissions: (hooks.find(({ name }) => name === "permissions")?.options ?? z.never())
      .optional()
      .describe("Rules for tool calls: shorthand for the options of the `permissions` hook."),
    hooks: hookSettings(hooks)
      .optional()
      .describe("Hooks by name: `true`, `false` or a map of options. The order is fixed."),
  });
}

/** Returns the schema of several agents with shared `defaults`. */
function agentsSchema(agent: AgentSchema) {
  return z.strictObject({
    version: z.literal(1).optional().describe("Version of the format."),
    defaults: agent
      .omit({ description: true, suggestions: true })
      .partial()
      .optional()
      .describe(
        "Defaults for the keys of every agent. Skein merges `hooks` hook by hook; an agent's own value replaces any other default.",
      ),
    agents: z
      .record(AgentName, agent)
      .refine((agents) => Object.keys(agents).length > 0, "must contain at least one agent")
      .describe(
        "Agents by name. A run that doesn't specify an agent uses the agent called `default`, or the first agent if none has that name.",
      ),
  });
}

function hookSettings(hooks: readonly HookDefinition[]) {
  return z.strictObject(Object.fromEntries(hooks.map((hook) => [hook.name, hookSetting(hook).optional()])));
}

/**
 * Returns the schema of a hook's setting. It accepts `true` only for a hook whose options all have defaults.
 */
function hookSetting({ options }: HookDefinition) {
  const needsNothing = options.safeParse({}, SELDOM).success;
  return z.union([needsNothing ? z.boolean() : z.literal(false), options]);
}

function toolName(names: readonly string[]) {
  return z
    .string()
    .min(1)
    .superRefine((text, context) => {
      const message = isPattern(text) ? patternFault(text) : nameFault(text, names);
      if (message) context.addIssue({ code: "custom", message });
    });
}

/**
 * Returns the fault of a tool name. Rejects only likely misspellings, because other names may belong to
 * tenants' tools.
 */
function nameFault(name: string, names: readonly string[]): string | undefined {
  const isKnown = names.includes(name) || settingOf(name) !== undefined;
  const meant = isKnown ? "" : didYouMean(name, names);
  return meant && `must be the name of a tool, or a glob${meant}`;
}

function patternFault(pattern: string): string | undefined {
  try {
    toolMatcher(pattern);
    return undefined;
  } catch (error) {
    return `must be a glob: it ${messageOf(error)}`;
  }
}
