// A tool that holds a run where a test wants it.

import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";

/** Waits until the test lets it go, or the run ends. */
export function gate() {
  const opened = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const tool = defineTool({
    name: "gate",
    description: "Waits.",
    parameters: z.object({}),
    execute: (_args, _call, run) =>
      new Promise<string>((resolve, reject) => {
        run.signal.addEventListener("abort", () => reject(run.signal.reason));
        opened.promise.then(() => resolve("open"));
        entered.resolve();
      }),
  });
  return { tool, open: opened.resolve, entered: entered.promise };
}

/** The answers of a model that calls it once. */
export const gated = [{ say: "Wait.", call: [{ tool: "gate" }] }, { say: "Through." }];
export const WITH_GATE = "agents: { assistant: { model: 'scripted:test', tools: [gate] } }";
