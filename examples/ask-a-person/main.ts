// Human approval in your own program. Permission rules select the calls that need approval, and the run waits for the
// answer. A waiting run needs no process, so with a durable store the answer may arrive after a restart.
//
// Run it:   npx node examples/ask-a-person/main.ts
// Test it:  npm test -- test/examples/library.test.ts

import { z } from "zod";
import {
  type AgentHandle,
  type Answer,
  createAgent,
  defineTool,
  type Interrupt,
  type RunResult,
  runAtConsole,
  scriptedModel,
} from "../../src/index.ts";

const pay = defineTool({
  name: "pay",
  description: "Pays an amount to a person.",
  parameters: z.object({ to: z.string(), amount: z.number() }),
  execute: ({ to, amount }) => `Paid ${amount} to ${to}.`,
});

export const clerk = () =>
  createAgent({
    name: "clerk",
    model: scriptedModel([
      { say: "I pay both.", call: [5, 5000].map((amount) => ({ tool: "pay", args: { to: "Ada", amount } })) },
      { say: "That is all." },
    ]),
    tools: [pay],
    permissions: {
      rules: [
        { allow: "pay", arguments: { to: "Ada", amount: 5 } },
        { ask: "pay", message: "So much money?" },
      ],
    },
  });

/** Answers questions until none is open. */
export async function untilDone(
  handle: AgentHandle,
  decide: (interrupt: Interrupt) => Omit<Answer, "id">,
): Promise<RunResult> {
  for (;;) {
    const result = await handle.result;
    if (result.status !== "interrupted") return result;
    await handle.answer(result.interrupts.map((interrupt) => ({ id: interrupt.id, ...decide(interrupt) })));
  }
}

// At a terminal, the library asks the user itself.
if (import.meta.main) await runAtConsole(clerk().run("Pay Ada what we owe."));
