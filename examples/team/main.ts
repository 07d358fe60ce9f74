// A team in your own program: one agent delegates tasks to another. A subagent works in its own thread, and its events
// appear in the parent's stream with `path`.
//
// Run it:   npx node examples/team/main.ts
// Test it:  npm test -- test/examples/library.test.ts

import { createAgent, createRuntime, scriptedModel } from "../../src/index.ts";

const report = { status: "completed", summary: "Skeins have 100 m." };
const researcher = () =>
  createAgent({
    name: "researcher",
    description: "Finds things out.",
    model: scriptedModel([{ say: "I look it up.", call: [{ tool: "task_complete", args: report }] }]),
  });

const task = { agent: "researcher", task: "How long is a skein?", context: "Of wool." };
export const editor = () =>
  createAgent({
    name: "editor",
    model: scriptedModel([
      { call: [{ tool: "delegate", args: { tasks: [task] } }] },
      { say: "100 metres, I am told." },
    ]),
    subagents: [researcher()],
  });

export async function play(print: (line: string) => void): Promise<void> {
  await using runtime = createRuntime({ agents: [editor()] });
  const handle = runtime.spawn("editor", { input: "How long is a skein?" });
  for await (const event of handle.events()) {
    const depth = "  ".repeat(event.path?.length ?? 0);
    if (event.event === "on_message" && event.data.message.role === "assistant" && event.data.message.content)
      print(`${depth}${event.data.message.content}`);
    if (event.event === "on_subagent_end") print(`${depth}${event.data.status}: ${event.data.summary}`);
  }
  const [child] = await handle.children();
  print(
    `the child's messages: ${(await child?.history())?.length}; its parent: ${(await child?.parent())?.agent}`,
  );
}

if (import.meta.main) await play((line) => console.log(line));
