// An agent without a server: your own model, tool and hook, run by the library.
//
// Run it:   npx node examples/in-process/main.ts "What is 6 times 7?"
// Test it:  npm test -- test/examples/in-process.test.ts

import { styleText } from "node:util";
import { z } from "zod";
import {
  type Agent,
  defineTool,
  done,
  type Hook,
  lastContent,
  type Message,
  type Model,
  NO_USAGE,
  type Outcome,
  runAgent,
  type StreamEvent,
  userMessage,
} from "../../src/index.ts";

/** The parameters are the schema that the model sees, and the type of what arrives. */
const multiply = defineTool({
  name: "multiply",
  description: "Multiplies two numbers.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  annotations: { readOnly: true },
  execute: ({ a, b }) => done(String(a * b)),
});

/** Around every tool call: a line before it, a line after it. */
const watched = (log: (line: string) => void): Hook => ({
  name: "watched",
  async *wrapToolCall(request, next) {
    log(`${request.call.name} is called with ${JSON.stringify(request.call.args)}`);
    const result = yield* next(request);
    log(`${request.call.name} has answered`);
    return result;
  },
});

/** Stands for a real model: asks the tool about two numbers in a question, then tells what the tool said. */
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

/** A hook is made anew for each run: so is the agent that holds it. */
export const newAgent = (log: (line: string) => void): Agent => ({
  name: "calculator",
  model: toyModel,
  system: [{ id: "instructions", text: "Use the tool for arithmetic.", cache: "static" }],
  tools: [multiply],
  hooks: [watched(log)],
  maxIterations: 5,
});

/** One run on `thread`, which grows by what is said in it. Returns how the run ended. */
export async function ask(
  agent: Agent,
  thread: Message[],
  question: string,
  onEvent: (event: StreamEvent) => void,
): Promise<Outcome> {
  const run = runAgent(agent, {
    id: crypto.randomUUID(),
    threadId: "mine",
    owner: { tenant: "home", user: "me" },
    attempt: 1,
    signal: AbortSignal.timeout(60_000),
    messages: thread,
    state: new Map(),
    settings: {},
    input: [userMessage(question)],
    usage: NO_USAGE,
    begun: new Set(),
    inbox: async () => [],
    interruptRequested: () => false,
  });
  for (;;) {
    const item = await run.next();
    if (item.done) return item.value;
    // The loop saves nothing: an `on_message` is the moment to write a message down.
    if (item.value.event === "on_message") thread.push(item.value.data.message);
    onEvent(item.value);
  }
}

if (import.meta.main) {
  const agent = newAgent((line) => console.log(styleText("dim", `  ${line}`)));
  const outcome = await ask(agent, [], process.argv[2] ?? "What is 6 times 7?", (event) => {
    if (event.event === "on_chat_model_stream" && "delta" in event.data) console.log(event.data.delta);
  });
  console.log(styleText("dim", `(${outcome.status})`));
}
