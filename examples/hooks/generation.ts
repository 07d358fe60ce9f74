// Pre- and post-generation hooks: once before the whole loop, once after it, for every outcome.

import { abortRun, type Hook, lastContent, setState } from "../../src/index.ts";

export function generation(isAllowed: (question: string) => boolean, report: (line: string) => void): Hook {
  return {
    name: "generation",
    async *beforeAgent(run) {
      // What is thrown in here fails the run before the model is asked.
      if (!isAllowed(lastContent(run.messages))) throw abortRun("This agent does not talk about that.");
      yield* setState(run, "asked_by", run.owner.user);
    },
    // What is thrown in here is a `warning`: the run has its outcome already.
    afterAgent: (outcome, run) => report(`${outcome.status} after ${run.messages.length} messages`),
  };
}
