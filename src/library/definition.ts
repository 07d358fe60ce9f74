// What an agent's options come to: the same definition and catalogue that agents.yaml comes to, checked alike.

import { z } from "zod";
import { memoizeModels } from "../agents/build.ts";
import type { Catalogue } from "../agents/catalogue.ts";
import { automaticModel } from "../agents/model-choice.ts";
import { fileSchemas } from "../agents/schema.ts";
import { BackendOptions } from "../backends/index.ts";
import { type AgentDefinition, AgentFields, type ModelSpec } from "../core/agent.ts";
import type { Backend } from "../core/backend.ts";
import { AppError } from "../core/errors.ts";
import type { Model } from "../core/model.ts";
import { permissions, permissionsWith } from "../hooks/permissions/index.ts";
import { check, type Fault } from "../lib/check.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import { createModel, missingKey } from "../models/index.ts";
import { nativeTools } from "../tools/native/index.ts";
import type { AgentOptions } from "./local-agent.ts";
import { arranged } from "./own-hooks.ts";

export interface Defined {
  readonly definition: AgentDefinition;
  readonly catalogue: Catalogue;
  /** One of the program's own. */
  readonly backend?: Backend;
}

/** Throws `config_invalid` with everything that is wrong, one a line. */
export function define(options: AgentOptions): Defined {
  const { name = "agent", loop, env = process.env, backend } = options;
  const model = options.model ?? (loop ? mute(name) : automaticModel(env));
  const spec = isModel(model) ? model.name : model;
  const catalogue = catalogueOf(options, model, env);
  const blocks = blocksOf(options);
  const fields = fieldsOf(options, spec, blocks);
  const { hook_settings, permissions } = options;
  const configured = isBackend(backend) ? undefined : backend;
  const { single } = fileSchemas(catalogue);
  const more = omitUndefined({ hooks: hook_settings, permissions, backend: configured });
  const checked = check(single, { name, ...fields, ...more });
  const faults = [...("faults" in checked ? checked.faults : []), ...faultsOf(options, spec, catalogue)];
  if (faults.length > 0) throw new AppError("config_invalid", faults.map(told(name)).join("\n"));
  const definition: AgentDefinition = {
    ...AgentFields.parse(fields),
    name,
    model: spec,
    system: blocks.map(({ id, text }) => ({ id, text, cache: "static" })),
    // As written: whoever makes a hook or a backend parses its options, and parsing twice would change them twice.
    hooks: { ...hook_settings, ...omitUndefined({ permissions }) },
    ...(backend ? { backend: configured ? { name, ...configured } : { type: OWN_BACKEND, name } } : {}),
  };
  return { definition, catalogue, ...(isBackend(backend) ? { backend } : {}) };
}

/** The type of a backend that no configuration makes. */
export const OWN_BACKEND = "own";

function catalogueOf(
  { tools = [], hooks = [], permission_rules: rules = [] }: AgentOptions,
  model: ModelSpec | Model,
  env: NodeJS.ProcessEnv,
): Catalogue {
  const ownOf = (spec: ModelSpec) => (isModel(model) && spec === model.name ? model : undefined);
  return {
    hooks: arranged(hooks).map((hook) => (hook === permissions ? permissionsWith(rules) : hook)),
    tools: () => [...tools.filter((tool) => typeof tool !== "string"), ...nativeTools],
    mcpServers: z.never(),
    backends: BackendOptions,
    createModel: memoizeModels((spec) => ownOf(spec) ?? createModel(spec, env)),
    missingKey: (spec) => (ownOf(spec) ? undefined : missingKey(spec, env)),
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

/** As a file would say it. What is no option is left in, to be refused. */
function fieldsOf(options: AgentOptions, model: ModelSpec, blocks: readonly Block[]) {
  const { name: _name, loop: _loop, env: _env, backend: _backend, hooks: _hooks, ...more } = options;
  const { hook_settings: _settings, permissions: _permissions, system_prompt: _prompt, ...others } = more;
  const { permission_rules: _rules, ...fields } = others;
  const { tools, subagents = [], ...rest } = fields;
  return {
    ...rest,
    model,
    ...omitUndefined({ tools: tools?.map((tool) => (typeof tool === "string" ? tool : tool.name)) }),
    subagents: subagents.map((each) => ("agent" in each ? { ...each, agent: each.agent.name } : each.name)),
    ...(blocks.length > 0 ? { system_prompt: blocks } : {}),
  };
}

/** What no schema of one field can see. */
function faultsOf(options: AgentOptions, model: ModelSpec, { createModel }: Catalogue): Fault[] {
  const { backend, hook_settings = {}, permissions } = options;
  const faults: Fault[] = [];
  for (const field of ["skills", "memory"] as const)
    if (options[field] !== undefined && backend === undefined)
      faults.push({ path: [field], message: "needs a `backend`: that is where its files are" });
  for (const field of ["identity", "context", "behavioral_hints"])
    if (field in options)
      faults.push({ path: [field], message: "is for files: write a block of `system_prompt` instead" });
  if (permissions && "permissions" in hook_settings)
    faults.push({
      path: ["permissions"],
      message: "is there twice: also in `hook_settings`; keep one of them",
    });
  const ids = blocksOf(options).map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) < index);
  if (twice !== undefined)
    faults.push({
      path: ["system_prompt"],
      message: `has two blocks \`${twice}\`; give each an id of its own`,
    });
  try {
    createModel(model);
  } catch (error) {
    faults.push({ path: ["model"], message: AppError.from(error).message });
  }
  return faults;
}

const told =
  (name: string) =>
  ({ path, message }: Fault) =>
    `agent \`${name}\`: ${path
      .map(String)
      .join(".")
      .replace(/^hooks\b/, "hook_settings")} ${message}`;

const isModel = (model: ModelSpec | Model): model is Model => typeof model === "object" && "stream" in model;
const isBackend = (backend: AgentOptions["backend"]): backend is Backend =>
  backend !== undefined && typeof backend.exec === "function";

/** For a loop of one's own that asks no model. */
function mute(name: string): Model {
  return {
    name: "none:none",
    async *stream() {
      throw new AppError(
        "config_invalid",
        `Agent \`${name}\` has no model: give it one, or do not let it speak.`,
      );
    },
  };
}
