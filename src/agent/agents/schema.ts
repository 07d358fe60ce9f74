// The schema of agents.yaml. It checks the file and, as JSON Schema, supports editors.

import { z } from "zod";
import { SELDOM } from "../../lib/check.ts";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { AgentFields, ModelSpec } from "../core/agent.ts";
import { messageOf } from "../core/errors.ts";
import type { HookDefinition } from "../core/hook.ts";
import { PluginList } from "../core/plugin-ref.ts";
import type { Catalogue } from "./catalogue.ts";
import { isPattern, toolMatcher } from "./tool-choice.ts";

const AgentName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
    "must be 1 to 64 characters out of A-Z a-z 0-9 _ -, the first a letter or a digit",
  );

const ModelName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
    "must be 1 to 64 characters of A-Z a-z 0-9 _ . -, and begin with a letter or a digit",
  );

type Parts = Pick<Catalogue, "backends" | "hooks" | "tools" | "mcpServers">;

export type AgentSchema = ReturnType<typeof agentSchema>;

/** The whole file: several agents, or one with a name. */
export function fileSchemas(parts: Parts) {
  const agent = agentSchema(parts);
  const shared = {
    plugins: PluginList.optional(),
    models: z
      .record(ModelName, ModelSpec)
      .optional()
      .describe("Names for models, which agents, runs and hooks may use where they name a model."),
    mcp_servers: parts.mcpServers
      .optional()
      .describe("Other programs whose tools agents may name as `mcp__<server>__<tool>`."),
  };
  return {
    agent,
    several: agentsSchema(agent).extend(shared),
    single: agent.extend({ ...shared, name: AgentName }),
  };
}

/** One agent, without its name. */
function agentSchema({ backends, hooks, tools }: Parts) {
  return AgentFields.extend({
    model: ModelSpec.optional().describe(
      "`provider:model` or a map. Default: a model that the environment has a key for, else the built-in demo.",
    ),
    backend: backends
      .optional()
      .describe("Where the agent's files and commands live. Without one it has none."),
    tools: z
      .array(toolName(tools().map(({ name }) => name)))
      .optional()
      .describe(
        "Names and globs of tools. An empty list leaves out all built-in tools; one that names a built-in tool, all that it does not name.",
      ),
    permissions: (hooks.find(({ name }) => name === "permissions")?.options ?? z.never())
      .optional()
      .describe("Which calls run, which are refused, and which a person approves: short for the hook."),
    hooks: hookSettings(hooks)
      .optional()
      .describe("Switched off, on, or on with options; the order is fixed."),
  });
}

/** Several agents with shared `defaults`. */
function agentsSchema(agent: AgentSchema) {
  return z.strictObject({
    version: z.literal(1).optional(),
    defaults: agent
      .omit({ description: true, suggestions: true })
      .partial()
      .optional()
      .describe(
        "Fields that agents do not set themselves. `hooks` are merged one by one, all other fields as a whole.",
      ),
    agents: z
      .record(AgentName, agent)
      .refine((agents) => Object.keys(agents).length > 0, "must hold at least one agent")
      .describe("The first one, or the one called `default`, answers when a run names none."),
  });
}

function hookSettings(hooks: readonly HookDefinition[]) {
  return z.strictObject(Object.fromEntries(hooks.map((hook) => [hook.name, hookSetting(hook).optional()])));
}

/** `true` is enough for a hook that has a default for every option. */
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

/** Other names may be tools of tenants, so only likely misspellings are refused. */
function nameFault(name: string, names: readonly string[]): string | undefined {
  const meant = names.includes(name) ? "" : didYouMean(name, names);
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
