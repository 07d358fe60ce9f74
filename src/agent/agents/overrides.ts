// A user's overrides of an agent for their own runs: some hooks, the skills and the model. Each hook defines what users may
// change. Overrides may not change anything that protects the operator or other users, or give the agent more than the
// operator allows.

import { z } from "zod";
import { boundedMap } from "../../lib/bounded-schemas.ts";
import { check, type Fault } from "../../lib/check.ts";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { globMatcher } from "../../lib/glob.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { AgentDefinition } from "../core/agent.ts";
import { AppError, messageOf } from "../core/errors.ts";
import type { HookDefinition, UserMay } from "../core/hook.ts";
import type { ItemStore, Shelf } from "../core/items.ts";
import type { Catalogue } from "./catalogue.ts";
import { requestedModel } from "./model-choice.ts";

/**
 * The maximum number of characters in all patterns of a list. The limit exists because every run compiles
 * them.
 */
const MAX_PATTERN_CHARS = 2048;

const Globs = z
  .array(z.string().min(1).max(256))
  .max(100)
  .superRefine((patterns, context) => {
    const chars = patterns.join("").length;
    if (chars > MAX_PATTERN_CHARS) {
      const message = `must have at most ${MAX_PATTERN_CHARS} characters in total; it has ${chars}`;
      context.addIssue({ code: "custom", message });
    } else for (const fault of patterns.flatMap(globFaults)) context.addIssue({ code: "custom", ...fault });
  });

function globFaults(pattern: string, at: number) {
  try {
    globMatcher(pattern);
    return [];
  } catch (error) {
    return [{ path: [at], message: `must be a glob: it ${messageOf(error)}` }];
  }
}

const Path = z.string().min(1).max(1024);

const Skills = z.strictObject({
  paths: z.array(Path).min(1).max(32).optional(),
  include: Globs.optional(),
  exclude: Globs.optional(),
});
const Model = z.string().min(1).max(256);
const HookName = z.string().max(64);
const Options = boundedMap(z.string().max(64), z.unknown(), 64);
/** Fewer hooks than this exist, so valid overrides never reach the limit. */
const MAX_HOOKS = 200;

export const Overrides = z
  .strictObject({
    hooks: boundedMap(HookName, z.union([z.boolean(), Options]), MAX_HOOKS)
      .optional()
      .describe("Hooks by name: `true`, `false`, or options. Each option replaces the configured one."),
    skills: Skills.optional().describe("Each field replaces the configured one."),
    model: Model.optional().describe("`provider:model` that replaces the agent's own model."),
  })
  .meta({ id: "Overrides" });
export type Overrides = z.infer<typeof Overrides>;

export const OverridesPatch = z
  .strictObject({
    hooks: boundedMap(HookName, z.union([z.boolean(), Options, z.null()]), MAX_HOOKS).nullish(),
    skills: z
      .strictObject({
        paths: Skills.shape.paths.nullable(),
        include: Skills.shape.include.nullable(),
        exclude: Skills.shape.exclude.nullable(),
      })
      .nullish(),
    model: Model.nullish(),
  })
  .describe("JSON Merge Patch (RFC 7396) of your overrides. `null` removes one.")
  .meta({ id: "OverridesPatch" });

export interface Overridden {
  /** The agent with all valid overrides applied. */
  readonly definition: AgentDefinition;
  /** The faults of the invalid overrides. */
  readonly faults: readonly Fault[];
}

/** Applies stored or new overrides, which may have been made for an older configuration. Never throws. */
export function overridden(definition: AgentDefinition, value: unknown, catalogue: Catalogue): Overridden {
  if (value === undefined || value === null) return { definition, faults: [] };
  const checked = check(Overrides, value);
  if (!("value" in checked)) return { definition, faults: checked.faults };
  const { hooks = {}, skills, model } = checked.value;
  const faults: Fault[] = [];
  const kept = <T>(result: Part<T> | undefined): T | undefined => {
    if (result && "faults" in result) faults.push(...result.faults);
    return result && "value" in result ? result.value : undefined;
  };
  const settings = Object.entries(hooks).map(([name, setting]) => {
    const changed = kept(hookSetting({ name, setting }, definition, catalogue.hooks));
    return changed === undefined ? [] : [[name, changed] as const];
  });
  const parts = {
    skills: kept(skills && skillsOf(skills, definition)),
    model: kept(model === undefined ? undefined : modelOf(model, definition, catalogue)),
  };
  const changes = { ...definition.hooks, ...Object.fromEntries(settings.flat()) };
  return { definition: { ...definition, ...omitUndefined(parts), hooks: changes }, faults };
}

/** An invalid override, as the API describes it to users. */
export const OverrideIssue = z.object({ path: z.string(), message: z.string() });
export type OverrideIssue = z.infer<typeof OverrideIssue>;

export const issuesOf = (faults: readonly Fault[]): OverrideIssue[] =>
  faults.map(({ path, message }) => ({ path: path.map(String).join("."), message }));

export const told = (issues: readonly OverrideIssue[]): string =>
  issues.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join("; ");

/** Returns the permission of users for each hook. */
export function changeable(hooks: readonly HookDefinition[]): Record<string, UserMay> {
  return Object.fromEntries(hooks.flatMap(({ name, userMay }) => (userMay ? [[name, userMay]] : [])));
}

type Part<T> = { readonly value: T } | { readonly faults: readonly Fault[] };

const fault = (path: Fault["path"], message: string) => ({ faults: [{ path, message }] });

type Setting = boolean | Record<string, unknown>;

/** Keeps the operator's options that the user does not override. */
function hookSetting(
  { name, setting }: { name: string; setting: Setting },
  { hooks: own }: AgentDefinition,
  hooks: readonly HookDefinition[],
): Part<Setting> {
  const path = ["hooks", name];
  const open = Object.keys(changeable(hooks));
  const hook = hooks.find((each) => each.name === name);
  if (!hook) return fault(path, `there is no hook \`${name}\`${didYouMean(name, open)}`);
  if (!hook.userMay) return fault(path, `cannot be changed by users; use one of ${open.join(", ")}`);
  if (setting === false) return { value: false };
  if (hook.userMay === "disable")
    return fault(path, "can only be turned off by users: set false, or null to undo that");
  if (typeof setting === "object" && hook.userMay === "switch")
    return fault(path, "can only be turned on or off by users: set true or false");
  const options = { ...asOptions(own[name]), ...asOptions(setting) };
  const checked = check(hook.options, options);
  if ("value" in checked) return { value: options };
  return { faults: checked.faults.map((each) => ({ ...each, path: [...path, ...each.path] })) };
}

const asOptions = (setting: Setting | undefined) => (typeof setting === "object" ? setting : {});

function skillsOf(
  skills: z.output<typeof Skills>,
  { backend, skills: own }: AgentDefinition,
): Part<NonNullable<AgentDefinition["skills"]>> {
  if (!backend) return fault(["skills"], "this agent has no backend to read skills from");
  const { paths, ...choice } = { ...own, ...omitUndefined(skills) };
  if (!paths) return fault(["skills", "paths"], "is missing: set it to the folders that contain the skills");
  return { value: { include: [], exclude: [], ...choice, paths } };
}

function modelOf(
  model: string,
  { model: own }: AgentDefinition,
  catalogue: Catalogue,
): Part<AgentDefinition["model"]> {
  try {
    return { value: requestedModel(model, own, catalogue) };
  } catch (error) {
    return fault(["model"], messageOf(error));
  }
}

const KEY = "overrides";
const MAX_ATTEMPTS = 16;

const shelfOf = (owner: Owner, agent: string): Shelf => ({ owner, of: { agent }, kind: "settings" });

/** Returns a user's stored overrides, or undefined if none are stored. */
export async function keptOverrides(items: ItemStore, owner: Owner, agent: string): Promise<unknown> {
  return (await items.get(shelfOf(owner, agent), KEY))?.value;
}

/**
 * Stores the result of `change`. Calls `change` again if another request stored overrides first. Throws the
 * errors of `change`, and `limit_exceeded` for overrides that are too large.
 */
export async function changeOverrides<T>(
  items: ItemStore,
  { owner, agent }: { owner: Owner; agent: string },
  change: (before: unknown) => T,
): Promise<T> {
  const shelf = shelfOf(owner, agent);
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const before = await items.get(shelf, KEY);
    const value = change(before?.value);
    if (await items.put(shelf, { key: KEY, value, version: before?.version ?? 0 })) return value;
  }
  throw new AppError("unavailable", `Other requests keep changing the overrides of \`${agent}\`. Try again.`);
}

export async function forgetOverrides(items: ItemStore, owner: Owner, agent: string): Promise<void> {
  await items.delete(shelfOf(owner, agent), KEY);
}
