// Pre- and post-tool-use hooks: code before `next` decides on a call, and code after it reads the result.

import { failed, type Hook } from "../../src/index.ts";

export function toolUse(forbidden: ReadonlySet<string>, secret: string): Hook {
  return {
    name: "tool-use",
    async *wrapToolCall(request, next) {
      const { call } = request;
      // Deny: the model sees the reason and continues without the tool.
      if (forbidden.has(call.name)) return failed(`\`${call.name}\` is not allowed here.`);
      // Rewrite: creates a new request instead of changing the original one.
      const safer = { ...request, call: { ...call, args: { ...call.args, dry_run: true } } };
      const result = yield* next(safer);
      // After the call: changes the result for the model, the thread and the viewers.
      if (result.status === "interrupted" || typeof result.output !== "string") return result;
      return { ...result, output: result.output.replaceAll(secret, "[secret]") };
    },
  };
}
