// Agents as operators configure them.

import { z } from "zod";
import { Duration } from "../../lib/units.ts";
import { shapeOf } from "../../lib/untrusted-schema/shape.ts";
import type { BackendConfig } from "./backend.ts";
import { AppError } from "./errors.ts";
import { type Model, ModelSettings, type SystemBlock } from "./model.ts";

/**
 * `provider:model`, a well-known model name alone, or an alias from `models` in the file. The model factory
 * rejects unknown names.
 */
const SINGLE = z.string().regex(/^\S(.*\S)?$/, "must be provider:model, for example openai:gpt-5");

/**
 * The map form of a model. The short form is a string: `provider:model`, or a well-known model name alone.
 */
export const ModelConfig = ModelSettings.extend({
  provider: z.string().min(1).describe("Name of the provider, such as `openai`."),
  model: z.string().min(1).describe("Name of the model at the provider."),
  base_url: z.url().optional().describe("Address of the provider, or of a server that speaks its protocol."),
  api_key: z
    .string()
    .min(1)
    .optional()
    .describe("API key. Prefer `api_key_env`, which keeps the key out of the file."),
  api_key_env: z
    .string()
    .min(1)
    .optional()
    .describe("Environment variable that contains the key. Default: the provider's own variable."),
  traceparent: z
    .boolean()
    .optional()
    .describe(
      "Sends the `traceparent` header with each request. Default: only if the address is not the provider's own.",
    ),
  searches: z
    .literal(true)
    .optional()
    .describe(
      "Set this if the server at `base_url` can search the web like the provider itself. See `provider: model` of `web.search`.",
    ),
}).strict();
export type ModelConfig = z.infer<typeof ModelConfig>;

/** Patterns for model names that imply a provider. */
const FAMILIES: readonly (readonly [RegExp, string])[] = [
  [/^claude-/, "anthropic"],
  [/^gemini-/, "gemini"],
  [/^(gpt-|chatgpt-|o\d)/, "openai"],
];

/** Parses `provider:model` or a well-known model name. Throws `config_invalid` for any other string. */
export function modelNamed(name: string): ModelConfig {
  const family = FAMILIES.find(([pattern]) => pattern.test(name))?.[1];
  const colon = name.indexOf(":");
  if (colon === -1 && family) return { provider: family, model: name };
  if (colon < 1 || colon === name.length - 1)
    throw new AppError("config_invalid", `\`${name}\` must be provider:model, for example openai:gpt-5`);
  return { provider: name.slice(0, colon), model: name.slice(colon + 1) };
}

/**
 * Creates a model without opening a connection. Reads keys from `env`. A missing key fails the first call,
 * not the creation.
 */
export type ModelFactory = (config: ModelConfig, env: NodeJS.ProcessEnv) => Model;

export const ModelSpec = z.union(
  [
    SINGLE,
    ModelConfig.extend({
      fallback: z
        .array(z.union([SINGLE, ModelConfig]))
        .optional()
        .describe("Models to try in order when the models before them are unavailable."),
    }),
  ],
  {
    error: ({ input }) =>
      Array.isArray(input) ? "must be one model; others go into its `fallback: [ … ]`" : undefined,
  },
);
export type ModelSpec = z.infer<typeof ModelSpec>;

/** A prompt contains spaces, so a string without spaces that ends like a file name is probably a path. */
const LOOKS_LIKE_A_PATH = /^(?:file:\/\/)?[\w./-]+\.(?:md|txt|markdown)$/i;

/**
 * Applies the limits of tenants' tool schemas. Errors that only compilation can find fail the agent's runs.
 */
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
      .describe(
        "`shared`: the subagent works in this agent's backend. `own`: the subagent works in the backend that its own definition names.",
      ),
  }),
]);

/**
 * The YAML fields of an agent, except `backend` and `hooks`. The rooms that implement backends and hooks add
 * the schemas of these two fields.
 */
export const AgentFields = z.strictObject({
  description: z
    .string()
    .optional()
    .describe("Description for users and for agents that delegate to this one."),
  prefix: z
    .string()
    .trim()
    .min(1)
    .max(16)
    .optional()
    .describe("Symbol that front ends show before the agent's name, such as an emoji."),
  suggestions: z
    .array(z.string().trim().min(1).max(200))
    .max(6)
    .optional()
    .describe("Questions that front ends suggest at the start of a conversation."),
  model: ModelSpec.optional(),
  system_prompt: z
    .union([
      z.string().refine((text) => !LOOKS_LIKE_A_PATH.test(text), "looks like a path: write { file: … }"),
      z.strictObject({ file: z.string().min(1) }),
      z.array(z.strictObject({ id: z.string().min(1), text: z.string().min(1) })).min(1),
    ])
    .optional()
    .describe(
      "System prompt: a text, `{file: path}` relative to this file, or a list of `{id, text}`. Maximum size of a file: 256 KiB.",
    ),
  identity: z
    .union([z.literal(true), z.string().trim().min(1).max(4096)])
    .optional()
    .describe(
      "First sentence of the prompt, to introduce the agent. With `true`, Skein writes it from the agent's name and description.",
    ),
  context: z
    .array(z.union([z.string().trim().min(1), z.strictObject({ file: z.string().min(1) })]))
    .min(1)
    .optional()
    .describe(
      "Project knowledge to add to the prompt: texts and `{file: path}`, at most 262,144 characters in total.",
    ),
  behavioral_hints: z
    .boolean()
    .optional()
    .describe("Adds standard advice to the prompt: look before acting, check your work, be brief."),
  output_schema: OutputSchema.optional().describe(
    "JSON Schema (2020-12) of an object. The final answer of every run matches this schema. The `done` event and the run contain the answer as `output`.",
  ),
  context_window: z.int().min(1000).default(128_000).describe("The model's context window, in tokens."),
  max_iterations: z
    .int()
    .min(0)
    .default(25)
    .describe("Maximum number of model calls in one run. 0 means no limit."),
  tools: z.array(z.string().min(1)).optional().describe("Names and globs of tools."),
  skills: Paths.extend({
    include: z.array(z.string()).default([]),
    exclude: z.array(z.string()).default([]),
  })
    .optional()
    .describe("Skills: `paths` of folders in the backend, and globs of names to `include` and `exclude`."),
  memory: Paths.optional().describe("Memory: `paths` of files in the backend."),
  subagents: z
    .array(Subagent)
    .default([])
    .describe("Agents that this agent can delegate to: names, or `{agent, backend}`."),
  max_delegation_depth: z
    .int()
    .min(0)
    .default(3)
    .describe("Maximum depth of delegation below the user's own thread. 0 turns delegation off."),
  interrupts: z
    .strictObject({
      expires_after: Duration.optional().describe(
        "Maximum time that a question can remain open. Default: no limit.",
      ),
      on_expiry: z
        .enum(["approve", "deny"])
        .default("deny")
        .describe("Decision on an approval that expires. A question that expires is always denied."),
      unattended: z
        .boolean()
        .default(false)
        .describe("Denies all of the agent's questions immediately, for runs that no one watches."),
    })
    .optional()
    .describe("Handling of unanswered questions."),
});

/** An agent from the configuration, complete and validated. */
export interface AgentDefinition extends z.output<typeof AgentFields> {
  readonly name: string;
  readonly model: ModelSpec;
  readonly system: readonly SystemBlock[];
  readonly backend?: BackendConfig;
  /** Each named hook is off (`false`), on (`true`), or on with options. Other hooks keep their default. */
  readonly hooks: Readonly<Record<string, boolean | Record<string, unknown>>>;
}
