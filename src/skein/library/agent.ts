// Creates an agent from options. The options become the same definition as an entry in agents.yaml and pass the same
// checks.

import { z } from "zod";
import { memoizeModels } from "../../agent/agents/build.ts";
import type { Catalogue } from "../../agent/agents/catalogue.ts";
import { automaticModel } from "../../agent/agents/model-choice.ts";
import { fileSchemas } from "../../agent/agents/schema.ts";
import { type AgentDefinition, AgentFields, type ModelSpec } from "../../agent/core/agent.ts";
import type { Backend } from "../../agent/core/backend.ts";
import { AppError } from "../../agent/core/errors.ts";
import { defineHook, type HookDefinition } from "../../agent/core/hook.ts";
import { arrangeHooks } from "../../agent/core/hook-order.ts";
import type { Model } from "../../agent/core/model.ts";
import { withinDomains } from "../../agent/core/own-search.ts";
import { hooks } from "../../agent/hooks/index.ts";
import { permissions, permissionsWith } from "../../agent/hooks/permissions/index.ts";
import { createModel, modelDoubt } from "../../agent/models/index.ts";
import { nativeTools } from "../../agent/tools/native.ts";
import { checkSeldom, type Fault } from "../../lib/check.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { BackendOptions } from "../../sandbox/index.ts";
import { OWN_BACKEND } from "./backends.ts";
import type { AgentOptions, HookFactory, LocalAgent, OwnHook, TypedOutput } from "./local-agent.ts";
import { createRuntime, type Runtime } from "./runtime.ts";

/** Creates an agent without opening any connection. Throws `config_invalid` with all problems, one per line. */
export function createAgent<S extends z.ZodType>(
  options: AgentOptions & { readonly output_schema: S },
): LocalAgent<z.output<S>>;
export function createAgent(options?: AgentOptions): LocalAgent;
export function createAgent(given: AgentOptions = {}): LocalAgent {
  const { options, output } = withJsonSchema(given);
  const { definition, catalogue, backend } = define(options);
  let own: Runtime | undefined;
  const agent: LocalAgent = {
    name: definition.name,
    definition,
    catalogue,
    ...omitUndefined({ description: definition.description, backend, loop: options.loop, output }),
    subagents: (options.subagents ?? []).map((each) => ("agent" in each ? each.agent : each)),
    run(input, spawning = {}) {
      own ??= createRuntime({ agents: [agent] });
      return own.spawn(agent, { ...spawning, input });
    },
    with: (changes: Partial<AgentOptions>) => createAgent({ ...given, ...changes }),
    async close() {
      const closing = own;
      own = undefined;
      await closing?.close();
    },
  };
  return agent;
}

/** Converts a Zod schema to JSON Schema. Keeps its checks and transforms for the output. */
function withJsonSchema(options: AgentOptions): { options: AgentOptions; output?: TypedOutput } {
  const { output_schema: zod } = options;
  if (!(zod instanceof z.ZodType)) return { options };
  const { $schema: _, ...schema } = z.toJSONSchema(zod, { io: "input", unrepresentable: "any" });
  const sentence = ({ path, message }: z.core.$ZodIssue) =>
    `${path.length > 0 ? `\`${path.join(".")}\`` : "It"}: ${message}.`;
  return {
    options: { ...options, output_schema: schema },
    output: {
      schema,
      check: (value) => zod.safeParse(value).error?.issues.map(sentence) ?? [],
      parse: (value) => zod.parse(value),
    },
  };
}

function define(options: AgentOptions) {
  const { name = "agent", loop, env = process.env, backend } = options;
  const model = options.model ?? (loop ? noModel(name) : automaticModel(env));
  const spec = isModel(model) ? model.name : model;
  const catalogue = catalogueOf(options, model, env);
  const blocks = blocksOf(options);
  const fields = { ...fieldsOf(options, blocks), ...(isModel(model) ? {} : { model }) };
  const { hook_settings, permissions } = options;
  const configured = isBackend(backend) ? undefined : backend;
  const { single } = fileSchemas(catalogue);
  const more = omitUndefined({ hooks: hook_settings, permissions, backend: configured });
  const checked = checkSeldom(single.omit({ plugins: true }), { name, ...fields, ...more });
  const faults = [...("faults" in checked ? checked.faults : []), ...faultsOf(options, spec, catalogue)];
  if (faults.length > 0) throw new AppError("config_invalid", faults.map(formatFault(name)).join("\n"));
  const definition: AgentDefinition = {
    ...AgentFields.parse(fields),
    name,
    model: spec,
    system: blocks.map(({ id, text }) => ({ id, text, cache: "static" })),
    // Not parsed here: `create` of a hook or backend parses its options, and parsing twice would transform them twice.
    hooks: { ...hook_settings, ...omitUndefined({ permissions }) },
    ...(backend ? { backend: configured ? { name, ...configured } : { type: OWN_BACKEND, name } } : {}),
  };
  return { definition, catalogue, ...(isBackend(backend) ? { backend } : {}) };
}

function catalogueOf(
  { tools = [], hooks = [], permission_rules: rules = [] }: AgentOptions,
  model: ModelSpec | Model,
  env: NodeJS.ProcessEnv,
): Catalogue {
  const ownOf = (spec: ModelSpec) => (isModel(model) && spec === model.name ? model : undefined);
  const ownTools = tools.filter((tool) => typeof tool !== "string");
  return {
    hooks: allHooks(hooks).map((hook) => (hook === permissions ? permissionsWith(rules) : hook)),
    tools: () => [...ownTools, ...nativeTools],
    mcpServers: z.never(),
    backends: BackendOptions,
    createModel: memoizeModels((spec) => withinDomains(ownOf(spec) ?? createModel(spec, env), ownTools)),
    modelDoubt: (spec) => (ownOf(spec) ? undefined : modelDoubt(spec, env)),
  };
}

interface Block {
  readonly id: string;
  readonly text: string;
}

function blocksOf({ system_prompt: prompt = [] }: AgentOptions): readonly Block[] {
  if (typeof prompt !== "string") return prompt;
  return prompt.trim() ? [{ id: "instructions", text: prompt }] : [];
}

/**
 * Returns the fields in the form in which agents.yaml contains them. Keeps unknown options, so the check can refuse
 * them.
 */
function fieldsOf({ model: _model, ...options }: AgentOptions, blocks: readonly Block[]) {
  const { name: _name, loop: _loop, env: _env, backend: _backend, hooks: _hooks, ...more } = options;
  const { hook_settings: _settings, permissions: _permissions, system_prompt: _prompt, ...others } = more;
  const { permission_rules: _rules, ...fields } = others;
  const { tools, subagents = [], ...rest } = fields;
  return {
    ...rest,
    ...omitUndefined({ tools: tools?.map((tool) => (typeof tool === "string" ? tool : tool.name)) }),
    subagents: subagents.map((each) => ("agent" in each ? { ...each, agent: each.agent.name } : each.name)),
    ...(blocks.length > 0 ? { system_prompt: blocks } : {}),
  };
}

/** Returns the problems that involve more than one field. */
function faultsOf(options: AgentOptions, model: ModelSpec, { createModel }: Catalogue): Fault[] {
  const { backend, hook_settings = {}, permissions } = options;
  const faults: Fault[] = [];
  for (const field of ["skills", "memory"] as const)
    if (options[field] !== undefined && backend === undefined)
      faults.push({ path: [field], message: "needs a `backend` for its files" });
  for (const field of ["identity", "context", "behavioral_hints"])
    if (field in options)
      faults.push({
        path: [field],
        message: "is supported only in agents.yaml: use a block of `system_prompt`",
      });
  if (permissions && "permissions" in hook_settings)
    faults.push({
      path: ["permissions"],
      message: "is also set in `hook_settings`: keep only one of them",
    });
  const ids = blocksOf(options).map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) < index);
  if (twice !== undefined)
    faults.push({
      path: ["system_prompt"],
      message: `has two blocks with the id \`${twice}\`: ids must be unique`,
    });
  if (options.model !== undefined && isModel(options.model) && !options.model.name)
    return [...faults, { path: ["model"], message: "needs a `name`, which events and usage show" }];
  try {
    createModel(model);
  } catch (error) {
    faults.push({ path: ["model"], message: AppError.from(error).message });
  }
  return faults;
}

const formatFault =
  (name: string) =>
  ({ path, message }: Fault) =>
    `agent \`${name}\`: ${path
      .map(String)
      .join(".")
      .replace(/^hooks\b/, "hook_settings")} ${message}`;

const isModel = (model: ModelSpec | Model): model is Model => typeof model === "object" && "stream" in model;
const isBackend = (backend: AgentOptions["backend"]): backend is Backend =>
  backend !== undefined && typeof backend.exec === "function";

/** Returns the model for an agent that has a custom loop and no model. */
function noModel(name: string): Model {
  return {
    name: "none:none",
    async *stream() {
      throw new AppError(
        "config_invalid",
        `Agent \`${name}\` has no model, but its loop calls \`speak\`. Set \`model\`.`,
      );
    },
  };
}

/** Returns all hooks of an agent, outermost first. Throws `config_invalid`. */
function allHooks(own: readonly OwnHook[]): HookDefinition[] {
  const defined = own.map((each, index) => {
    const name = `own#${index + 1}`;
    return "hook" in each ? { ...each, hook: asDefinition(each.hook, name) } : asDefinition(each, name);
  });
  return arrangeHooks(defined, hooks);
}

/** A factory is named after its position in the list. */
function asDefinition(hook: HookFactory | HookDefinition, name: string): HookDefinition {
  if (typeof hook !== "function") return hook;
  return defineHook({
    name,
    options: z.object({}),
    activeByDefault: () => true,
    create: (_options, services) => hook(services),
  });
}
