import { expect, test } from "vitest";
import { z } from "zod";
import { hooks } from "../../../src/agent/hooks/index.ts";
import { agentWith } from "./made.ts";

test("hooks surround an agent in one order, the first outermost", () => {
  expect(hooks.map(({ name }) => name)).toEqual([
    "tracing",
    "budgets",
    "retry",
    "guardrails",
    "loop_detection",
    "stall_detection",
    "failure_reflection",
    "permissions",
    "trimming",
    "sliding_window",
    "summarization",
    "context",
    "memory",
    "skills",
    "filesystem",
    "todos",
    "subagents",
    "tasks",
    "notes",
    "reflections",
    "progress_reminder",
    "eviction",
    "refused_files",
    "metering",
    "timeout",
  ]);
});

test("an agent without files has those that need none", () => {
  const active = hooks.filter((hook) => hook.activeByDefault(agentWith())).map(({ name }) => name);
  expect(active).toEqual([
    "tracing",
    "retry",
    "summarization",
    "todos",
    "subagents",
    "eviction",
    "refused_files",
    "metering",
    "timeout",
  ]);
});

test("options have these defaults", () => {
  const defaults = hooks.map(({ name, options }) => [name, options.safeParse({}).data]);
  expect(Object.fromEntries(defaults)).toMatchObject({
    budgets: { tokens: 1_000_000, seconds: 3600, warn_at: 0.8 },
    loop_detection: { window: 10, warn_at: 3, end_at: 5, except: [] },
    stall_detection: { window: 6, alike: 0.8 },
    failure_reflection: { after: 2 },
    permissions: { mode: "default", rules: [], files: [] },
    trimming: { keep: 4, max_chars: 500, step: 8 },
    sliding_window: { max_messages: 100, keep: 0.5 },
    summarization: { trigger: 0.85, keep: 0.1 },
    progress_reminder: { every: 5, last: 3 },
    timeout: { tool: 600, model: 300 },
  });
});

/** Switched on without a word, they would do nothing. */
const MUST_BE_TOLD: ReadonlySet<string> = new Set(["guardrails", "context"]);

test.each(hooks.map((hook) => [hook.name, hook] as const))(
  "%s needs no options unless it has nothing to do without, and refuses unknown ones",
  (_, hook) => {
    expect(hook.options.safeParse({}).success).toBe(!MUST_BE_TOLD.has(hook.name));
    expect(hook.options.safeParse({ no_such_option: 1 }).success).toBe(false);
    expect(z.toJSONSchema(hook.options, { io: "input" })).toMatchObject({
      type: "object",
      additionalProperties: false,
    });
  },
);

test("every option is described", () => {
  for (const { name, options } of hooks) {
    const { properties = {} } = z.toJSONSchema(options, { io: "input" });
    for (const [option, schema] of Object.entries(properties))
      expect(schema, `${name}.${option}`).toHaveProperty("description");
  }
});
