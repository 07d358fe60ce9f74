// Loads agent definitions from agents.yaml. Validates the whole file, adds defaults, and reports all problems at once, each
// with its position in the file.

import { z } from "zod";
import { type Fault, SELDOM } from "../../lib/check.ts";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { readText } from "../../lib/read-text.ts";
import { MAX_YAML_BYTES, readYaml } from "../../lib/yaml/document.ts";
import type { Variables } from "../../lib/yaml/interpolate.ts";
import type { AgentDefinition } from "../core/agent.ts";
import { AppError } from "../core/errors.ts";
import { FlowRule } from "../core/flow.ts";
import { PluginList } from "../core/plugin-ref.ts";
import type { Catalogue, Extend, ExtendedCatalogue } from "./catalogue.ts";
import { doubtsOf, patternDoubt, serverDoubts } from "./doubts.ts";
import { aliasesIn, type ModelAliases, withAliases } from "./model-aliases.ts";
import { automaticModel } from "./model-choice.ts";
import { modelFaults, modelsIn } from "./named-models.ts";
import { searchFaults } from "./provider-search.ts";
import { draftsOf, isSingle, namedTools, type RawAgent } from "./raw-agent.ts";
import { type FiledRules, readRuleFiles, ruleFiles } from "./rule-files.ts";
import { type AgentSchema, fileSchemas } from "./schema.ts";
import { type Prompt, promptFiles, readPrompt } from "./system-prompt.ts";

export interface AgentsSource {
  /** The agents file. Relative paths in the file start at the file's folder. */
  readonly file: string;
  readonly catalogue: Catalogue;
  /** Loads the plugins under `plugins`. Default: plugins are not supported. */
  readonly extend?: Extend | undefined;
  readonly env: Variables;
  /**
   * The patterns of the models that runs may request, in addition to the models in the file. Default: any
   * model.
   */
  readonly allowModels?: readonly string[] | undefined;
  /**
   * Called with all files of the configuration, including unreadable ones, before any problem is reported.
   */
  onFiles?(files: readonly string[]): void;
}

export interface LoadedAgents {
  /** The definitions, at least one, in the order in which they appear in the file. */
  readonly definitions: readonly [AgentDefinition, ...AgentDefinition[]];
  /** The catalogue with the parts of the file's plugins. */
  readonly catalogue: Catalogue;
  /** The model aliases in the file. */
  readonly models: ModelAliases;
  /** The names of the agents that have no model in the file. */
  readonly withoutModel: ReadonlySet<string>;
  /** The MCP servers, parsed by the catalogue's schema. */
  readonly mcpServers: unknown;
  /** The schedules, parsed by the catalogue's schema. */
  readonly schedules: unknown;
  /**
   * Problems that will occur only when the agents are used, such as a missing key for a model. Each problem
   * is one line with its position.
   */
  readonly warnings: readonly string[];
}

/** Loads the agents. Throws `config_invalid` with all problems, one per line. */
export async function loadAgents(source: AgentsSource): Promise<LoadedAgents> {
  const { file, env } = source;
  source.onFiles?.([file]);
  const read = await readText(file, MAX_YAML_BYTES);
  if ("fault" in read)
    throw invalid([`\`${file}\` ${read.fault}; AGENTS_FILE names the file that describes the agents`]);
  const document = readYaml(file, read.text, env);
  const { catalogue, files: ofPlugins, faults: broken } = await extended(source, document.data);
  source.onFiles?.([file, ...ofPlugins]);
  // Stop here, because every agent that uses a missing plugin's parts would be invalid.
  if (broken.length > 0)
    throw invalid(
      document.linesOf(
        broken.map(({ index, message }) => document.problem({ path: ["plugins", index], message })),
      ),
    );
  const { agent: schema, single, several } = fileSchemas(catalogue);
  const checked = document.check(isSingle(document.data) ? single : several);
  const written = draftsOf(document.data);
  const rulesOf = (draft: RawAgent) => ruleFiles(permissionsOf(draft).value, file);
  source.onFiles?.([
    file,
    ...ofPlugins,
    ...written.flatMap((each) => [...promptFiles(each.fields, file), ...rulesOf(each)]),
  ]);
  const permissions = catalogue.hooks.find(({ name }) => name === "permissions");
  const drafts = await Promise.all(
    written.map(async (draft) => ({
      ...draft,
      prompt: await readPrompt(draft, file),
      rules: await readRuleFiles(permissionsOf(draft).value, file, permissions),
    })),
  );
  const servers = serverNames(document.data);
  const models = aliasesIn(document.data);
  const named = withAliases(catalogue, models);
  const faults = [
    ...Object.entries(models).flatMap(([name, spec]) => modelFaults(spec, ["models", name], named)),
    ...drafts.flatMap((draft) => [...faultsOf(draft, named, env), ...serverFaults(draft, servers)]),
    ...drafts.flatMap(permissionFaults),
    ...faultsAmong(drafts, document.data),
  ];
  const problems = [...("problems" in checked ? checked.problems : []), ...faults.map(document.problem)];
  const [first, ...others] = drafts;
  if (!("value" in checked) || problems.length > 0 || !first) throw invalid(document.linesOf(problems));
  const defined = (draft: AgentDraft) => define(draft, schema, env);
  const doubts = [
    ...drafts.flatMap((draft) => doubtsOf(draft, named)),
    ...drafts.flatMap((draft) => permissionDoubts(draft, named, servers)),
    ...serverDoubts(document.data, env),
  ];
  return {
    definitions: [defined(first), ...others.map(defined)],
    catalogue,
    models,
    withoutModel: new Set(drafts.filter(({ fields }) => fields.model === undefined).map(({ name }) => name)),
    mcpServers: checked.value.mcp_servers ?? {},
    schedules: checked.value.schedules ?? {},
    warnings: document.linesOf([...document.doubts, ...doubts.map(document.problem)]),
  };
}

async function extended(
  { extend, catalogue, file }: AgentsSource,
  data: unknown,
): Promise<ExtendedCatalogue> {
  const plugins = WithPlugins.safeParse(data, SELDOM).data?.plugins ?? [];
  if (extend) return extend(plugins, file);
  const message = "cannot be loaded here";
  return { catalogue, files: [], faults: plugins.map((_, index) => ({ index, message })) };
}
const WithPlugins = z.looseObject({ plugins: PluginList.optional() });

const invalid = (problems: readonly string[]) => new AppError("config_invalid", problems.join("\n"));

interface AgentDraft extends RawAgent {
  readonly prompt: Prompt;
  /** The rules from the files that the agent's permissions name. */
  readonly rules: FiledRules;
}

/** Returns an agent's permissions from `permissions` or `hooks.permissions`, and their position. */
function permissionsOf({ fields, placeOf }: RawAgent): { value: unknown; place: Fault["path"] } {
  if ("permissions" in fields) return { value: fields.permissions, place: placeOf("permissions") };
  const value = HookFields.safeParse(fields.hooks).data?.permissions;
  return { value, place: [...placeOf("hooks"), "permissions"] };
}

function permissionFaults(draft: AgentDraft): Fault[] {
  const { place } = permissionsOf(draft);
  const faults: Fault[] = draft.rules.faults.map((fault) => ({ ...fault, path: [...place, ...fault.path] }));
  const { fields } = draft;
  const isTwice = "permissions" in fields && "permissions" in (HookFields.safeParse(fields.hooks).data ?? {});
  const message = "is also set under `hooks.permissions`; keep only one of them";
  return isTwice ? [...faults, { path: place, message }] : faults;
}

function permissionDoubts(draft: AgentDraft, catalogue: Catalogue, servers: readonly string[]): Fault[] {
  const { value, place } = permissionsOf(draft);
  const hook = catalogue.hooks.find(({ name }) => name === "permissions");
  const checked = value === undefined ? undefined : hook?.options.safeParse(value);
  const doubts = checked?.success ? (hook?.doubts?.(checked.data) ?? []) : [];
  return [...doubts, ...flowDoubts(value, catalogue, servers)].map((doubt) => ({
    ...doubt,
    path: [...place, ...doubt.path],
  }));
}

/** Warns about tools in flow rules that the agent cannot have. */
function flowDoubts(permissions: unknown, catalogue: Catalogue, servers: readonly string[]): Fault[] {
  const rules = FlowFields.safeParse(permissions, SELDOM).data?.flow ?? [];
  return rules.flatMap((rule, index) =>
    (["after", "ask", "deny"] as const).flatMap((key) =>
      (rule[key] ?? []).flatMap((pattern, at) => {
        const message = patternDoubt(pattern, catalogue, servers);
        return message === undefined ? [] : [{ path: ["flow", index, key, at], message }];
      }),
    ),
  );
}
const FlowFields = z.looseObject({ flow: z.array(FlowRule) });

/** Returns faults that involve several fields. Skips parts that the schema has rejected. */
function faultsOf(draft: AgentDraft, catalogue: Catalogue, env: Variables): Fault[] {
  const { fields, prompt, placeOf } = draft;
  const faults: Fault[] = searchFaults(draft, catalogue, env);
  for (const field of ["skills", "memory"])
    if (field in fields && !("backend" in fields))
      faults.push({ path: placeOf(field), message: "needs a `backend`: the backend stores its files" });
  for (const { path, message } of prompt.faults)
    faults.push({ path: [...placeOf(String(path[0])), ...path.slice(1)], message });
  for (const { spec, path } of modelsIn({ fields, placeOf }, catalogue))
    faults.push(...modelFaults(spec, path, catalogue));
  return faults;
}

/**
 * Checks the server part of MCP tool names. The server's name is known here, but its tools are known only
 * after the server has listed them.
 */
function serverFaults({ fields, placeOf }: RawAgent, servers: readonly string[]): Fault[] {
  return namedTools(fields).flatMap((name, index) => {
    const server = /^mcp__([^*?[{]+?)__/.exec(name)?.[1];
    if (server === undefined || servers.includes(server)) return [];
    const message = `there is no MCP server \`${server}\` under \`mcp_servers\`${didYouMean(server, servers)}`;
    return [{ path: [...placeOf("tools"), index], message }];
  });
}

/** Returns the faults in references from one part of the file to another. */
const faultsAmong = (drafts: readonly AgentDraft[], data: unknown): Fault[] => [
  ...drafts.flatMap((draft) => teamFaults(draft, drafts)),
  ...sharingFaults(drafts),
  ...scheduleFaults(data, drafts),
];

/** Checks that subagents are other agents in the file. */
function teamFaults({ name: own, fields, placeOf }: RawAgent, drafts: readonly RawAgent[]): Fault[] {
  const names = drafts.map(({ name }) => name);
  const listed = z.array(z.unknown()).safeParse(fields.subagents).data ?? [];
  return listed.flatMap((entry, index) => {
    const place = [...placeOf("subagents"), index];
    const name = typeof entry === "string" ? entry : NamedAgent.safeParse(entry, SELDOM).data?.agent;
    if (name === undefined) return [];
    const path = typeof entry === "string" ? place : [...place, "agent"];
    // The `subagents` in `defaults` may list every agent, including the agent that inherits the list.
    if (name === own && path[0] === "defaults") return [];
    if (name === own) return [{ path, message: "is the agent itself: an agent cannot delegate to itself" }];
    return names.includes(name)
      ? []
      : [{ path, message: `there is no agent \`${name}\`${didYouMean(name, names)}` }];
  });
}
const NamedAgent = z.looseObject({ agent: z.string() });

/** Checks that the agents of schedules are in the file. */
function scheduleFaults(data: unknown, drafts: readonly RawAgent[]): Fault[] {
  const names = drafts.map(({ name }) => name);
  const schedules = Object.entries(WithSchedules.safeParse(data, SELDOM).data?.schedules ?? {});
  return schedules.flatMap(([schedule, { agent }]) => {
    if (typeof agent !== "string" || names.includes(agent)) return [];
    const message = `there is no agent \`${agent}\`${didYouMean(agent, names)}`;
    return [{ path: ["schedules", schedule, "agent"], message }];
  });
}
const WithSchedules = z.looseObject({
  schedules: z.record(z.string(), z.looseObject({ agent: z.unknown() })).optional(),
});

const serverNames = (data: unknown) =>
  Object.keys(WithServers.safeParse(data, SELDOM).data?.mcp_servers ?? {});
const WithServers = z.looseObject({ mcp_servers: z.record(z.string(), z.unknown()) });

/** Checks that agents that share a container by name configure it identically. */
function sharingFaults(drafts: readonly AgentDraft[]): Fault[] {
  const meant = new Map<string, { agent: string; options: string }>();
  return drafts.flatMap(({ name: agent, fields, placeOf }) => {
    const { type, name = agent, ...rest } = SharedBackend.safeParse(fields.backend, SELDOM).data ?? {};
    if (type !== "docker") return [];
    const options = JSON.stringify(Object.entries(rest).sort());
    const other = meant.get(name);
    if (!other) meant.set(name, { agent, options });
    if (!other || other.options === options) return [];
    const message = `names the same container \`${name}\` as agent \`${other.agent}\`, but configures it differently: use the same configuration or another \`name\``;
    return [{ path: placeOf("backend"), message }];
  });
}

const SharedBackend = z.looseObject({ type: z.string(), name: z.string().optional() });

const HookFields = z.record(z.string(), z.unknown());
const HookSettings = z.record(z.string(), z.union([z.boolean(), z.record(z.string(), z.unknown())]));

/** Creates an agent's definition from a draft that has no faults. */
function define(draft: AgentDraft, schema: AgentSchema, env: Variables): AgentDefinition {
  const { name, fields, prompt, rules } = draft;
  const { value: permissions } = permissionsOf(draft);
  const { backend: _, permissions: __, ...own } = schema.parse(fields, SELDOM);
  return {
    ...own,
    name,
    model: own.model ?? automaticModel(env),
    system: prompt.blocks,
    // The options stay unparsed. Hooks and backends parse their own options, and a second parse could
    // transform the values again.
    hooks: HookSettings.parse({
      ...HookFields.parse(fields.hooks ?? {}),
      ...(permissions === undefined ? {} : { permissions: withRules(permissions, rules) }),
    }),
    ...(fields.backend ? { backend: { name, ...BackendFields.parse(fields.backend, SELDOM) } } : {}),
  };
}

/** Adds the rules from files before `rules` in the YAML. */
function withRules(permissions: unknown, { rules: filed }: FiledRules): unknown {
  const { files, rules = [], ...rest } = RuleFields.safeParse(permissions, SELDOM).data ?? {};
  return files ? { ...rest, rules: [...filed, ...rules] } : permissions;
}

const RuleFields = z.looseObject({
  files: z.array(z.unknown()).optional(),
  rules: z.array(z.unknown()).optional(),
});

const BackendFields = z.looseObject({ type: z.string() });
