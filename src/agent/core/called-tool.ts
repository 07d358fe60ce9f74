// Which tool a model means by a name that no tool has.

import type { ToolCall } from "./message.ts";

/** The call under the name of the tool that it means: `call` itself where the name is a tool's, or means none. */
export function namedCall(call: ToolCall, tools: ReadonlyMap<string, unknown>): ToolCall {
  if (tools.has(call.name)) return call;
  const bare = call.name.replace(TOKENS, "").trim().replace(NAMESPACE, "");
  const alike = tools.has(bare) ? [bare] : [...tools.keys()].filter((name) => plain(name) === plain(bare));
  const [name] = alike;
  return name === undefined || alike.length > 1 ? call : { ...call, name };
}

/** What servers leave of a model's own format behind a name: `ls<|channel|>commentary`. */
const TOKENS = /<\|.*$/s;

/** The names of the group that all tools are in, as models were trained with it. */
const NAMESPACE = /^(?:functions?|tools?|default_api)[.:]/;

const plain = (name: string) => name.toLowerCase().replace(/[\s-]/g, "_");
