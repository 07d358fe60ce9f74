// A server of your own: an agent with your tool and hook, served over the same HTTP API as in `skein serve`.
//
// Run it:   npx node examples/server/main.ts, then: curl -N 127.0.0.1:8000/threads/t/runs -H 'content-type: application/json' -d '{"input": "6 and 7"}'
// Test it:  npm test -- test/examples/server.test.ts

import {
  createAgent,
  createServer,
  defineHook,
  definePlugin,
  defineTool,
  lastContent,
  type Model,
  NO_USAGE,
  type Server,
  z,
} from "../../src/index.ts";

const multiply = defineTool({
  name: "multiply",
  description: "Multiplies two numbers.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  annotations: { readOnly: true, requiresPermission: false },
  execute: ({ a, b }) => String(a * b),
});

/** Users can set these options for their own runs: `PATCH /agents/calculator/overrides`. */
const polite = defineHook({
  name: "polite",
  options: z.strictObject({ word: z.string().max(20).default("please") }),
  userMay: "configure",
  activeByDefault: () => true,
  create: ({ word }) => ({
    name: "polite",
    modifyRequest: (request) => ({
      ...request,
      system: [...request.system, { id: "polite", text: `Say ${word}.`, cache: "static" }],
    }),
  }),
});

/** Replaces a real model. With `model: "anthropic:claude-sonnet-4-5"`, the agent uses Claude. */
const toyModel: Model = {
  name: "toy:arithmetic",
  async *stream({ messages, system }) {
    const [a, b] = lastContent(messages).match(/\d+/g)?.map(Number) ?? [];
    const asks = messages.at(-1)?.role === "user" && a !== undefined && b !== undefined;
    const word = system.find(({ id }) => id === "polite")?.text;
    const content = asks ? "" : `It is ${lastContent(messages)}. (${word})`;
    if (content) yield { event: "on_chat_model_stream", data: { delta: content } };
    return {
      content,
      tool_calls: asks ? [{ id: crypto.randomUUID(), name: "multiply", args: { a, b } }] : [],
      reasoning: [],
      stop_reason: asks ? "tool_use" : "end_turn",
      usage: NO_USAGE,
    };
  },
};

/** An additional route, which requires the same credentials as the agents. */
const status = definePlugin({
  name: "status",
  async routes(app, { callerOf }) {
    app.get("/", async (request) => ({ hello: callerOf(request).user }));
  },
});

export const calculatorServer = (port: number): Server =>
  createServer({
    agents: [createAgent({ name: "calculator", model: toyModel, tools: [multiply], hooks: [polite] })],
    plugins: [status],
    config: { listen: { port }, store: "memory", log_level: "warn", shutdown: { grace: "1s" } },
  });

if (import.meta.main) {
  const server = calculatorServer(Number(process.env.PORT ?? 8000));
  console.log(`serves on ${await server.listen()}`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void server.close());
}
