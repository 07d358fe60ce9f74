// Pre- and post-generation hooks, which run once before the whole loop and once after it, regardless of the outcome.

import { abortRun, type Hook, lastContent, setState } from "../../src/index.ts";

export function generation(isAllowed: (question: string) => boolean, report: (line: string) => void): Hook {
  return {
    name: "generation",
    async *beforeAgent(run) {
      // An error thrown here fails the run before the model is called.
      if (!isAllowed(lastContent(run.messages))) throw abortRun("This agent does not talk about that.");
      yield* setState(run, "asked_by", run.owner.user);
    },
    // An error thrown here becomes a `warning`, because the run already has its outcome.
    afterAgent: (outcome, run) => report(`${outcome.status} after ${run.messages.length} messages`),
  };
}
