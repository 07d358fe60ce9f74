// Pre- and post-tool-use hooks: what comes before `next` decides about a call, what comes after it reads the result.

import { failed, type Hook } from "../../src/index.ts";

export function toolUse(forbidden: ReadonlySet<string>, secret: string): Hook {
  return {
    name: "tool-use",
    async *wrapToolCall(request, next) {
      const { call } = request;
      // Deny: the model reads the reason and continues without the tool.
      if (forbidden.has(call.name)) return failed(`\`${call.name}\` is not allowed here.`);
      // Rewrite: a new request, never an edited one.
      const safer = { ...request, call: { ...call, args: { ...call.args, dry_run: true } } };
      const result = yield* next(safer);
      // After it: change what the model, the thread and the viewers get.
      if (result.status === "interrupted" || typeof result.output !== "string") return result;
      return { ...result, output: result.output.replaceAll(secret, "[secret]") };
    },
  };
}
