// Hooks that few agents use. This file defines their names and options. Their code is in `extra/`, and each hook's code is
// loaded for the first agent that uses it.

import { z } from "zod";
import { defineHook, type HookDefinition } from "../core/hook.ts";

type Extra<S extends z.ZodType> = Pick<HookDefinition<S>, "name" | "options" | "tools" | "userMay">;

function extraHook<S extends z.ZodType>(
  definition: Extra<S>,
  load: () => Promise<Pick<HookDefinition<S>, "create">>,
): HookDefinition {
  let loaded: Pick<HookDefinition<S>, "create"> | undefined;
  return defineHook({
    ...definition,
    activeByDefault: () => false,
    async load() {
      loaded ??= await load();
    },
    create(options, services) {
      if (!loaded) throw new Error(`The code of hook \`${definition.name}\` is not loaded.`);
      return loaded.create(options, services);
    },
  });
}

export const stallDetection = extraHook(
  {
    name: "stall_detection",
    options: z.strictObject({
      window: z.int().min(2).max(100).default(6).describe("Number of recent results to compare."),
      alike: z
        .number()
        .gt(0)
        .lt(1)
        .default(0.8)
        .describe("Fraction of results that repeat an earlier result (0–1)."),
    }),
  },
  () => import("./extra/stall-detection.ts"),
);

export const failureReflection = extraHook(
  {
    name: "failure_reflection",
    userMay: "configure",
    options: z.strictObject({
      after: z.int().min(1).max(100).default(2).describe("Number of consecutive failed steps."),
    }),
  },
  () => import("./extra/failure-reflection.ts"),
);

export const slidingWindow = extraHook(
  {
    name: "sliding_window",
    userMay: "configure",
    options: z.strictObject({
      max_messages: z
        .int()
        .min(2)
        .max(100_000)
        .default(100)
        .describe(
          "Maximum number of messages in a request. The most recent turn and system messages are always kept, even above this number.",
        ),
      keep: z
        .number()
        .gt(0)
        .max(1)
        .default(0.5)
        .describe("Fraction of `max_messages` to keep when the window moves (0–1)."),
    }),
  },
  () => import("./extra/sliding-window.ts"),
);

export const tasks = extraHook(
  {
    name: "tasks",
    userMay: "switch",
    tools: ["create_tasks", "list_tasks", "claim_task", "update_task"],
    options: z.strictObject({}),
  },
  () => import("./extra/tasks.ts"),
);

export const notes = extraHook(
  {
    name: "notes",
    userMay: "switch",
    tools: ["write_note", "read_note", "list_notes"],
    options: z.strictObject({}),
  },
  () => import("./extra/notes.ts"),
);

/** This hook does nothing by itself. When it is on, the `subagents` hook records and shows reflections. */
export const reflections = defineHook({
  name: "reflections",
  userMay: "switch",
  options: z.strictObject({}),
  activeByDefault: () => false,
  create: () => ({ name: "reflections" }),
});

export const progressReminder = extraHook(
  {
    name: "progress_reminder",
    userMay: "configure",
    options: z.strictObject({
      every: z
        .int()
        .min(1)
        .max(1000)
        .default(5)
        .describe("Number of model calls without a change to the todos."),
      last: z
        .int()
        .min(0)
        .max(100)
        .default(3)
        .describe(
          "Number of remaining model calls at which the model is reminded. A second reminder precedes the last call. 0 means never.",
        ),
    }),
  },
  () => import("./extra/progress-reminder.ts"),
);
