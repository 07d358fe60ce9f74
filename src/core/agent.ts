// An agent as operators describe it.

import { z } from "zod";
import { Duration } from "../lib/units.ts";
import type { BackendConfig } from "./backend.ts";
import { ModelSettings, type SystemBlock } from "./model.ts";

const SINGLE = z
  .string()
  .regex(
    /^([a-z0-9_-]+:.+|(claude|gpt|chatgpt)-.+|o\d.*)$/,
    "must be provider:model, for example openai:gpt-5",
  );

/** A model in its map form; the short form is the string `provider:model`, or a well-known name alone. */
export const ModelConfig = ModelSettings.extend({
  provider: z.string().min(1),
  model: z.string().min(1),
  base_url: z.url().optional(),
  api_key: z.string().min(1).optional().describe("Better not in the file itself: use api_key_env."),
  api_key_env: z.string().min(1).optional().describe("The environment variable that holds the key."),
}).strict();
export type ModelConfig = z.infer<typeof ModelConfig>;

export const ModelSpec = z.union([
  SINGLE,
  ModelConfig.extend({
    fallback: z
      .array(z.union([SINGLE, ModelConfig]))
      .optional()
      .describe("Asked in turn while the one before stays unavailable."),
  }),
]);
export type ModelSpec = z.infer<typeof ModelSpec>;

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

/**
 * What an operator says of an agent. `backend` and `hooks` belong to the rooms that implement them: their
 * schemas are added where the configuration is read.
 */
export const AgentFields = z.strictObject({
  description: z.string().optional(),
  prefix: z
    .string()
    .trim()
    .min(1)
    .max(16)
    .optional()
    .describe("The mark that front ends show before its name, such as an emoji."),
  model: ModelSpec.optional(),
  system_prompt: z
    .union([
      z.string(),
      z.strictObject({ file: z.string().min(1) }),
      z.array(z.strictObject({ id: z.string().min(1), text: z.string().min(1) })).min(1),
    ])
    .optional()
    .describe("A text, a list of blocks, or `file:` with a path beside this file."),
  identity: z.string().trim().min(1).max(4096).optional().describe("Who it is: what its prompt begins with."),
  context: z
    .array(z.union([z.string().trim().min(1), z.strictObject({ file: z.string().min(1) })]))
    .min(1)
    .optional()
    .describe("What it must know of the project: texts, or `file:` with paths beside this file."),
  behavioral_hints: z
    .boolean()
    .optional()
    .describe("Whether it is told how to work: look first, check, be brief."),
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
    .describe("Agents that it may give tasks to, by name or with where they work."),
  max_delegation_depth: z
    .int()
    .min(0)
    .default(3)
    .describe("How far down from the user's own thread it may still give tasks to others; 0 = it may not."),
  interrupts: z
    .strictObject({
      expires_after: Duration.optional().describe("Default: what is asked stays open until it is answered."),
      on_expiry: z
        .enum(["approve", "deny"])
        .default("deny")
        .describe("What is decided of an approval that nobody gives; a question is denied in any case."),
      unattended: z
        .boolean()
        .default(false)
        .describe("Nobody is there: what would be asked is denied at once."),
    })
    .optional()
    .describe("What happens to a question that nobody answers."),
});

/** An agent as the configuration names it, complete and checked. */
export interface AgentDefinition extends z.output<typeof AgentFields> {
  readonly name: string;
  readonly model: ModelSpec;
  readonly system: readonly SystemBlock[];
  readonly backend?: BackendConfig;
  /** Per hook: off, on, or on with options. What is not named follows the hook's own default. */
  readonly hooks: Readonly<Record<string, boolean | Record<string, unknown>>>;
}
