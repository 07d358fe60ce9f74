// Your own tool and hook for the agents in agents.yaml. The running server reloads this file when you save it.

import { defineHook, definePlugin, defineTool, z } from "skein";

/** The model sees the name, the description and the parameters. */
const rollDice = defineTool({
  name: "roll_dice",
  description: "Rolls dice and returns the number that each shows.",
  parameters: z.object({
    count: z.int().min(1).max(100).default(1),
    sides: z.int().min(2).max(1000).default(6).describe("Sides of each die."),
  }),
  annotations: { readOnly: true, requiresPermission: false },
  execute: ({ count, sides }) =>
    Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides)).join(", "),
});

/** Agents enable it under `hooks:`, with its options. It wraps every tool call. */
const shout = defineHook({
  name: "shout",
  options: z.strictObject({ mark: z.string().max(10).default("!").describe("Comes after each result.") }),
  activeByDefault: () => false,
  create: ({ mark }) => ({
    name: "shout",
    async *wrapToolCall(request, next) {
      const result = yield* next(request);
      if (result.status !== "done" || typeof result.output !== "string") return result;
      return { ...result, output: result.output + mark };
    },
  }),
});

export default definePlugin({ name: "mine", tools: [rollDice], hooks: [shout] });
