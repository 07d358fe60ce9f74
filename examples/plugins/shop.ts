// A plugin for agents.yaml: a tool, a hook with options, and a model provider. The server reloads it after each change.

import { defineHook, definePlugin, defineTool, lastContent, type Model, NO_USAGE, z } from "skein";

const PRICES: Readonly<Record<string, number>> = { wool: 4, silk: 12 };

const price = defineTool({
  name: "price_of",
  description: "The price of 100 g of a yarn, in euros.",
  parameters: z.object({ yarn: z.string().describe("Such as wool.") }),
  annotations: { readOnly: true, requiresPermission: false },
  execute: ({ yarn }) => (yarn in PRICES ? `${PRICES[yarn]} euros` : `We do not sell ${yarn}.`),
});

/** Agents enable it with `hooks: { opening_hours: { closes: 20 } }`. */
const openingHours = defineHook({
  name: "opening_hours",
  options: z.strictObject({
    closes: z.int().min(1).max(24).default(18).describe("The hour at which the shop closes."),
  }),
  activeByDefault: () => false,
  create: ({ closes }) => ({
    name: "opening_hours",
    modifyRequest: (request) => ({
      ...request,
      system: [
        ...request.system,
        { id: "opening_hours", text: `The shop closes at ${closes}:00.`, cache: "static" },
      ],
    }),
  }),
});

/** An example of a new model provider. It asks for the price of a yarn and then repeats it. */
const parrot = (name: string): Model => ({
  name,
  async *stream({ messages, system }) {
    const asked = messages.at(-1)?.role === "user";
    const yarn = lastContent(messages).match(/wool|silk|cotton/)?.[0] ?? "wool";
    const hours = system.find(({ id }) => id === "opening_hours")?.text ?? "";
    const content = asked ? "" : `${lastContent(messages)} ${hours}`;
    if (content) yield { event: "on_chat_model_stream", data: { delta: content } };
    return {
      content,
      tool_calls: asked ? [{ id: crypto.randomUUID(), name: "price_of", args: { yarn } }] : [],
      reasoning: [],
      stop_reason: asked ? "tool_use" : "end_turn",
      usage: NO_USAGE,
    };
  },
});

export default definePlugin({
  name: "shop",
  tools: [price],
  hooks: [{ hook: openingHours, after: "retry" }],
  models: { parrot: ({ model }) => parrot(`parrot:${model}`) },
});
