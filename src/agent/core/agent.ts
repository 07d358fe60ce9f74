// An agent as operators describe it.

import { z } from "zod";
import { Duration } from "../../lib/units.ts";
import { shapeOf } from "../../lib/untrusted-schema/shape.ts";
import type { BackendConfig } from "./backend.ts";
import { AppError } from "./errors.ts";
import { type Model, ModelSettings, type SystemBlock } from "./model.ts";

/** `provider:model`, a well-known name alone, or a name of the file's `models`: which ones exist is known where the model is made. */
const SINGLE = z.string().regex(/^\S(.*\S)?$/, "must be provider:model, for example openai:gpt-5");

/** A model in its map form; the short form is the string `provider:model`, or a well-known name alone. */
export const ModelConfig = ModelSettings.extend({
  provider: z.string().min(1),
  model: z.string().min(1),
  base_url: z.url().optional(),
  api_key: z.string().min(1).optional().describe("Better not in the file itself: use api_key_env."),
  api_key_env: z.string().min(1).optional().describe("The environment variable that holds the key."),
  traceparent: z
    .boolean()
    .optional()
    .describe("Whether requests say which trace they are part of. Default: to a gateway of your own only."),
}).strict();
export type ModelConfig = z.infer<typeof ModelConfig>;

/** Models that may be named without their provider. */
const FAMILIES: readonly (readonly [RegExp, string])[] = [
  [/^claude-/, "anthropic"],
  [/^gemini-/, "gemini"],
  [/^(gpt-|chatgpt-|o\d)/, "openai"],
];

/** The model of a name: `provider:model`, or a well-known one alone. Throws `config_invalid` for any other text. */
export function modelNamed(name: string): ModelConfig {
  const family = FAMILIES.find(([pattern]) => pattern.test(name))?.[1];
  const colon = name.indexOf(":");
  if (colon === -1 && family) return { provider: family, model: name };
  if (colon < 1 || colon === name.length - 1)
    throw new AppError("config_invalid", `\`${name}\` must be provider:model, for example openai:gpt-5`);
  return { provider: name.slice(0, colon), model: name.slice(colon + 1) };
}

/** Makes a model of a provider. Opens no connection. `env` holds the keys; a missing one is an error of the first call. */
export type ModelFactory = (config: ModelConfig, env: NodeJS.ProcessEnv) => Model;

export const ModelSpec = z.union(
  [
    SINGLE,
    ModelConfig.extend({
      fallback: z
        .array(z.union([SINGLE, ModelConfig]))
        .optional()
        .describe("Tried in order while the models before are unavailable."),
    }),
  ],
  {
    error: ({ input }) =>
      Array.isArray(input) ? "must be one model; others go into its `fallback: [ … ]`" : undefined,
  },
);
export type ModelSpec = z.infer<typeof ModelSpec>;

/** A prompt has spaces. */
const LOOKS_LIKE_A_PATH = /^(?:file:\/\/)?[\w./-]+\.(?:md|txt|markdown)$/i;

/** Bounded as tenants' schemas are. What only compiling it tells fails its runs. */
const OutputSchema = z.record(z.string(), z.unknown()).superRefine((schema, context) => {
  try {
    shapeOf(schema);
    if (schema.type !== "object") throw new SyntaxError('needs `"type": "object"`');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    context.addIssue({ code: "custom", message: `cannot be used: it ${error.message}` });
  }
});

const Paths = z.strictObject({ paths: z.array(z.string().min(1)).min(1) });

const Subagent = z.union([
  z.string().min(1),
  z.strictObject({
    agent: z.string().min(1),
    backend: z
      .enum(["shared", "own"])
      .default("shared")
      .describe("Whether it works where this agent works, or in its own backend."),
  }),
]);

/** Agents in YAML, without `backend` and `hooks`: the rooms that implement them add their schemas. */
export const AgentFields = z.strictObject({
  description: z.string().optional(),
  prefix: z
    .string()
    .trim()
    .min(1)
    .max(16)
    .optional()
    .describe("The mark that front ends show before its name, such as an emoji."),
  suggestions: z
    .array(z.string().trim().min(1).max(200))
    .max(6)
    .optional()
    .describe("What front ends offer a person to ask first."),
  model: ModelSpec.optional(),
  system_prompt: z
    .union([
      z.string().refine((text) => !LOOKS_LIKE_A_PATH.test(text), "looks like a path: write { file: … }"),
      z.strictObject({ file: z.string().min(1) }),
      z.array(z.strictObject({ id: z.string().min(1), text: z.string().min(1) })).min(1),
    ])
    .optional()
    .describe("A text, a list of blocks, or `file:` with a path beside this file."),
  identity: z
    .union([z.literal(true), z.string().trim().min(1).max(4096)])
    .optional()
    .describe("Who the agent is: the beginning of its prompt. `true`: its name and description."),
  context: z
    .array(z.union([z.string().trim().min(1), z.strictObject({ file: z.string().min(1) })]))
    .min(1)
    .optional()
    .describe("Project knowledge for its prompt: texts, or `file:` with paths beside this file."),
  behavioral_hints: z
    .boolean()
    .optional()
    .describe("Adds advice on how to work to its prompt: look first, check, be brief."),
  output_schema: OutputSchema.optional().describe(
    "JSON Schema (2020-12) of an object: every run's final answer is JSON of it, which `done` and the run have as `output`.",
  ),
  context_window: z.int().min(1000).default(128_000).describe("In tokens."),
  max_iterations: z.int().min(0).default(25).describe("Model calls in one run; 0 = no limit."),
  tools: z.array(z.string().min(1)).optional().describe("Names and globs."),
  skills: Paths.extend({
    include: z.array(z.string()).default([]),
    exclude: z.array(z.string()).default([]),
  }).optional(),
  memory: Paths.optional(),
  subagents: z
    .array(Subagent)
    .default([])
    .describe("Agents that it may delegate to, by name or with the backend they work in."),
  max_delegation_depth: z
    .int()
    .min(0)
    .default(3)
    .describe("The depth below the user's own thread down to which it may delegate; 0 = never."),
  interrupts: z
    .strictObject({
      expires_after: Duration.optional().describe(
        "How long a question stays open. Default: until it is answered.",
      ),
      on_expiry: z
        .enum(["approve", "deny"])
        .default("deny")
        .describe("The decision on an expired approval; an expired question is always denied."),
      unattended: z
        .boolean()
        .default(false)
        .describe("No one is available to answer: every question is denied at once."),
    })
    .optional()
    .describe("How unanswered questions are decided."),
});

/** An agent as the configuration names it, complete and checked. */
export interface AgentDefinition extends z.output<typeof AgentFields> {
  readonly name: string;
  readonly model: ModelSpec;
  readonly system: readonly SystemBlock[];
  readonly backend?: BackendConfig;
  /** Per hook: off, on, or on with options. Hooks that are not named keep their default. */
  readonly hooks: Readonly<Record<string, boolean | Record<string, unknown>>>;
}
