// An agent without a server: your own model, tool and hook, run by the library.
//
// Run it:   npx node examples/in-process/main.ts "What is 6 times 7?"
// Test it:  npm test -- test/examples/in-process.test.ts

import { styleText } from "node:util";
import { z } from "zod";
import {
  createAgent,
  defineTool,
  type Hook,
  type LocalAgent,
  lastContent,
  type Model,
  NO_USAGE,
} from "../../src/index.ts";

/** The parameters define the schema that the model sees and the type of the arguments. */
const multiply = defineTool({
  name: "multiply",
  description: "Multiplies two numbers.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  annotations: { readOnly: true },
  execute: ({ a, b }) => String(a * b),
});

/** Logs a line before each tool call and a line after it. */
const watched = (log: (line: string) => void) => (): Hook => ({
  name: "watched",
  async *wrapToolCall(request, next) {
    log(`${request.call.name} is called with ${JSON.stringify(request.call.args)}`);
    const result = yield* next(request);
    log(`${request.call.name} has answered`);
    return result;
  },
});

/** Replaces a real model: calls the tool with the two numbers in the question, then repeats the tool's result. */
const toyModel: Model = {
  name: "toy:arithmetic",
  async *stream({ messages, signal }) {
    signal.throwIfAborted();
    const [a, b] = lastContent(messages).match(/\d+/g)?.map(Number) ?? [];
    const asks = messages.at(-1)?.role === "user" && a !== undefined && b !== undefined;
    const content = asks ? "Let me see. " : `It is ${lastContent(messages)}.`;
    yield { event: "on_chat_model_stream", data: { delta: content } };
    return {
      content,
      tool_calls: asks ? [{ id: crypto.randomUUID(), name: "multiply", args: { a, b } }] : [],
      reasoning: [],
      stop_reason: asks ? "tool_use" : "end_turn",
      usage: NO_USAGE,
    };
  },
};

/** With `model: "anthropic:claude-sonnet-4-5"`, the agent uses Claude. */
export const calculator = (log: (line: string) => void): LocalAgent =>
  createAgent({
    name: "calculator",
    model: toyModel,
    system_prompt: "Use the tool for arithmetic.",
    tools: [multiply],
    hooks: [watched(log)],
    hook_settings: { todos: false },
    max_iterations: 5,
  });

if (import.meta.main) {
  const agent = calculator((line) => console.log(styleText("dim", `  ${line}`)));
  const handle = agent.run(process.argv[2] ?? "What is 6 times 7?");
  for await (const event of handle.events())
    if (event.event === "on_chat_model_stream" && "delta" in event.data) console.log(event.data.delta);
  const { status } = await handle.result;
  console.log(styleText("dim", `(${status})`));
}
