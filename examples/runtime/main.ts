// A runtime with several active agents: follow a run, steer it, and shut the runtime down.
//
// Run it:   npx node examples/runtime/main.ts
// Test it:  npm test -- test/examples/library.test.ts

import { once } from "node:events";
import { z } from "zod";
import { createAgent, createRuntime, defineTool, scriptedModel, textOf } from "../../src/index.ts";

/** Waits until its signal aborts. */
const wait = defineTool({
  name: "wait",
  description: "Waits until it is cancelled.",
  parameters: z.object({}),
  async execute(_args, _call, { signal }) {
    if (!signal.aborted) await once(signal, "abort");
    return "called off";
  },
});

const greeter = createAgent({
  name: "greeter",
  model: scriptedModel(({ messages }) => ({ say: `Hello, ${textOf(messages.at(-1)?.content ?? "")}!` })),
});
const watchman = createAgent({
  name: "watchman",
  model: scriptedModel([{ say: "I keep watch.", call: [{ tool: "wait" }] }]),
  tools: [wait],
});

export async function play(print: (line: string) => void): Promise<void> {
  // Keeps threads and runs in memory. `stores: createSqliteStores({ dataDir: "./data" })` stores them on disk.
  await using runtime = createRuntime({ agents: [greeter, watchman] });

  const watching = runtime.spawn("watchman", { input: "Keep watch." });
  const atWork = Promise.withResolvers<void>();
  const leave = watching.subscribe(({ event }) => {
    if (event === "on_tool_start") atWork.resolve();
  });
  await atWork.promise;
  leave();

  // A thread continues with each new message.
  const talk = runtime.spawn(greeter, { input: "Ada" });
  print((await talk.result).text);
  await talk.send("Bob");
  print((await talk.result).text);
  print(`${(await talk.history()).length} messages`);

  print(`at work: ${runtime.list().map(({ agent }) => agent)}`);
  await runtime.shutdown(watching.id);
  print(`the watchman's run: ${await watching.status()}`);
}

if (import.meta.main) await play((line) => console.log(line));
