// Tools for the tests of the loop.

import { z } from "zod";
import { defineTool, type Tool } from "../../../src/agent/core/tool.ts";
import { plainTool } from "../../support/agent.ts";

export const echo = defineTool({
  name: "echo",
  description: "Says it again.",
  parameters: z.object({ text: z.string() }),
  execute: ({ text }) => `echo: ${text}`,
});

/** A tool that runs until it is cancelled, and tells when it has begun. */
export function endless(begun: () => void, name = "endless"): Tool {
  return plainTool(
    name,
    (_args, _call, run) =>
      new Promise<string>((_, reject) => {
        run.signal.addEventListener("abort", () => reject(run.signal.reason));
        begun();
      }),
  );
}
