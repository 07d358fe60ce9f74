// Usage logging, for each model call and for the whole run.

import type { Hook } from "../../src/index.ts";

export function usage(log: (line: string) => void): Hook {
  return {
    name: "usage",
    async *wrapModelCall(request, next) {
      const completion = yield* next(request);
      const { model, usage } = completion.message;
      log(`${model}: ${usage?.input_tokens} in, ${usage?.output_tokens} out`);
      return completion;
    },
    afterAgent: (_outcome, { usage }) => log(`run: ${usage.input_tokens} in, ${usage.output_tokens} out`),
  };
}
