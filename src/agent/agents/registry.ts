// Manages the agents of this server. Reads them from agents.yaml, finds them by name and builds them for each
// run.

import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { AgentDefinition } from "../core/agent.ts";
import { AppError } from "../core/errors.ts";
import type { UserMay } from "../core/hook.ts";
import type { Agent } from "../core/runnable-agent.ts";
import { activeHooks, type BuildOptions, buildAgent, memoizeModels } from "./build.ts";
import type { Catalogue } from "./catalogue.ts";
import { type AgentsSource, type LoadedAgents, loadAgents } from "./load.ts";
import { type ModelAliases, withAliases } from "./model-aliases.ts";
import { modelChoice, namesOf, reasonOfAutomaticModel, requestedModel } from "./model-choice.ts";
import { changeable, issuesOf, type OverrideIssue, overridden } from "./overrides.ts";
import { isReserved } from "./tool-choice.ts";
import { HookChoice, hookChoices, ModelChoices, modelChoices } from "./user-choices.ts";

/** An agent as users see it, without its prompt, keys and addresses. */
export const AgentInfo = z
  .object({
    name: z.string(),
    description: z.string().optional(),
    prefix: z.string().optional().describe("Icon to show before the agent's name."),
    suggestions: z
      .array(z.string())
      .optional()
      .describe("Questions to suggest to users at the start of a conversation."),
    default: z.boolean().describe("True if the agent handles runs that don't specify an agent."),
    model: z.string(),
    tools: z
      .array(z.string())
      .describe("Names of the tools in your runs. Subagents also have `task_complete`."),
    hooks: z.array(z.string()).describe("Hooks in order, starting with the outermost."),
    backend: z.string().optional().describe("Type of the backend for the agent's files and commands."),
    context_window: z.int(),
    max_iterations: z.int(),
  })
  .meta({ id: "Agent" });
/** The settings that users may override. */
export const UserChoices = z.object({
  hooks: z.array(HookChoice).describe("Hooks in order, starting with the outermost."),
  models: ModelChoices.describe("Models that your runs and overrides can name."),
});
export type UserChoices = z.infer<typeof UserChoices>;

/** The part of an agent's description that depends only on the configuration. */
export type AgentInfo = Omit<z.infer<typeof AgentInfo>, "tools">;

export interface DefaultModel {
  /** The model as `provider:model`. */
  readonly name: string;
  /** A clause that explains why this model was chosen. */
  readonly reason: string;
}

export interface AgentRegistry {
  /** Returns the default agent if no name is given. Throws `invalid_request` for an unknown name. */
  find(name: string | undefined): AgentDefinition;
  /** Returns true if a tool of the server, or of one of its hooks, has this name in any agent. */
  isReserved(name: string): boolean;
  /** Returns true if the file names this model as `provider:model`, including fallbacks. */
  hasModel(name: string): boolean;
  /** Returns the agents in the order in which they appear in the file. */
  list(): readonly AgentInfo[];
  /** Returns the default agent's model, if a file describes the agents. */
  defaultModel?(): DefaultModel;
  /**
   * Returns an agent with a user's overrides applied, and the overrides that the agent does not accept.
   * Throws `not_found`.
   */
  seenWith(
    name: string,
    user: unknown,
  ): { readonly agent: AgentInfo; readonly ignored: readonly OverrideIssue[] };
  /**
   * Returns the settings that the user may change in an agent. `user` contains their overrides. Throws
   * `not_found`.
   */
  choices(name: string, user: unknown): UserChoices;
  /** Returns the permission of users for each hook. */
  changeable(): Readonly<Record<string, UserMay>>;
  /** Throws `invalid_request` for a model that runs may not request. */
  checkModel(definition: AgentDefinition, model: string): void;
  /** Builds an agent for one run of `definition`, which may be older than the last `reload`. */
  build(
    definition: AgentDefinition,
    services: Omit<BuildOptions, "model" | "user">,
    overrides: Pick<BuildOptions, "model" | "user">,
  ): Promise<Agent>;
  /** Returns the parsed `mcp_servers` of the file. */
  mcpServers(): unknown;
  /** Returns the parsed `schedules` of the file. */
  schedules(): unknown;
  /**
   * Returns the problems that will occur only when the agents are used. Each problem is one line with its
   * position in the file.
   */
  warnings(): readonly string[];
  /** Returns all files of the configuration, including unreadable ones. */
  files(): readonly string[];
  /**
   * Reads the file again. Returns true if anything changed. Throws `config_invalid` for an invalid file,
   * without changing anything.
   */
  reload(): Promise<boolean>;
}

/** Creates the registry. Throws `config_invalid` if the file is invalid. */
export async function createRegistry(source: AgentsSource): Promise<AgentRegistry> {
  const { allowModels } = source;
  const choice: Pick<Catalogue, "modelChoice"> = allowModels
    ? { modelChoice: modelChoice(allowModels, () => current.models) }
    : {};
  let files: readonly string[] = [];
  const onFiles = (read: readonly string[]) => {
    files = [...new Set(read)];
  };
  const load = async (): Promise<Snapshot> => {
    const loaded = await loadAgents({ ...source, onFiles });
    const named = withAliases(loaded.catalogue, loaded.models);
    return snapshot(loaded, { ...named, createModel: memoizeModels(named.createModel), ...choice });
  };
  let current: Snapshot = await load();
  let reloads = 0;
  return {
    find: (name) => (name === undefined ? current.default : named(name, current.agents)),
    hasModel: (name) => current.models.includes(name),
    list: () => current.list(),
    defaultModel: () => defaultModelOf(current, source),
    seenWith(name, user) {
      const { catalogue } = current;
      const definition = known(name, current.agents);
      const { definition: changed, faults } = overridden(definition, user, catalogue);
      const agent = { ...infoOf(changed, catalogue), default: definition === current.default };
      return { agent, ignored: issuesOf(faults) };
    },
    choices(name, user) {
      const { catalogue } = current;
      const own = known(name, current.agents);
      const { definition } = overridden(own, user, catalogue);
      return {
        hooks: hookChoices(definition, catalogue.hooks),
        models: modelChoices(own, catalogue, current.models),
      };
    },
    changeable: () => changeable(current.catalogue.hooks),
    isReserved: (name) => isReserved(name, current.catalogue),
    mcpServers: () => current.mcpServers,
    schedules: () => current.schedules,
    checkModel: (definition, model) => void requestedModel(model, definition.model, current.catalogue),
    build: (definition, services, overrides) =>
      buildAgent(definition, current.catalogue, { ...services, ...overrides }),
    warnings: () => current.warnings,
    files: () => files,
    async reload() {
      const turn = ++reloads;
      const loaded = await load();
      // Only the latest reload counts, because it read the most recent file.
      if (turn !== reloads || isSame(loaded, current)) return false;
      current = loaded;
      return true;
    },
  };
}

function defaultModelOf({ default: agent, catalogue, withoutModel }: Snapshot, source: AgentsSource) {
  const { name } = catalogue.createModel(agent.model);
  const isNamed = !withoutModel.has(agent.name);
  return { name, reason: isNamed ? `which \`${source.file}\` names` : reasonOfAutomaticModel(source.env) };
}

/** The loaded configuration. It is immutable, so runs keep their definitions across reloads. */
interface Snapshot {
  readonly agents: ReadonlyMap<string, AgentDefinition>;
  readonly default: AgentDefinition;
  readonly catalogue: Catalogue;
  /** The catalogue at the time of loading. It changes when a plugin changes. */
  readonly parts: Catalogue;
  readonly aliases: ModelAliases;
  /** All models that the file names, including aliases and fallbacks. */
  readonly models: readonly string[];
  list(): readonly AgentInfo[];
  readonly withoutModel: ReadonlySet<string>;
  readonly mcpServers: unknown;
  readonly schedules: unknown;
  readonly warnings: readonly string[];
}

function snapshot(
  { definitions, catalogue: parts, models: aliases, ...rest }: LoadedAgents,
  catalogue: Catalogue,
): Snapshot {
  const [first] = definitions;
  const agents = new Map(definitions.map((definition) => [definition.name, definition]));
  const standard = agents.get("default") ?? first;
  const list = () => definitions.map((each) => ({ ...infoOf(each, catalogue), default: each === standard }));
  const specs = [...definitions.map(({ model }) => model), ...Object.keys(aliases)];
  const names = specs.flatMap((spec) => namesOf(catalogue.createModel(spec)));
  const models = [...new Set([...Object.keys(aliases), ...names])];
  return { agents, default: standard, catalogue, parts, aliases, models, list, ...rest };
}

function isSame(one: Snapshot, other: Snapshot): boolean {
  const said = ({ agents, default: standard, aliases, mcpServers, schedules }: Snapshot) => [
    [...agents],
    standard.name,
    aliases,
    mcpServers,
    schedules,
  ];
  return one.parts === other.parts && isDeepStrictEqual(said(one), said(other));
}

function known(name: string, agents: Snapshot["agents"]): AgentDefinition {
  const found = agents.get(name);
  if (found) return found;
  throw noAgent("not_found", name, agents);
}

function named(name: string, agents: Snapshot["agents"]): AgentDefinition {
  const found = agents.get(name);
  if (found) return found;
  throw noAgent("invalid_request", name, agents);
}

const noAgent = (code: "invalid_request" | "not_found", name: string, agents: Snapshot["agents"]) =>
  new AppError(code, `There is no agent \`${name}\`${didYouMean(name, agents.keys())}`);

export function infoOf(definition: AgentDefinition, catalogue: Catalogue): Omit<AgentInfo, "default"> {
  const { name, description, prefix, suggestions, model, backend, context_window, max_iterations } =
    definition;
  return {
    name,
    ...omitUndefined({ description, prefix, suggestions, backend: backend?.type }),
    model: catalogue.createModel(model).name,
    hooks: activeHooks(definition, catalogue.hooks).map((hook) => hook.name),
    context_window,
    max_iterations,
  };
}
