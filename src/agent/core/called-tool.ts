// Finds the tool that a model means when no tool has the name it wrote.

import type { ToolCall } from "./message.ts";

/**
 * Returns the call with the name of the tool that it means, or `call` itself if the name is correct or
 * matches no tool.
 */
export function namedCall(call: ToolCall, tools: ReadonlyMap<string, unknown>): ToolCall {
  if (tools.has(call.name)) return call;
  const bare = call.name.replace(TOKENS, "").trim().replace(NAMESPACE, "");
  const alike = tools.has(bare) ? [bare] : [...tools.keys()].filter((name) => plain(name) === plain(bare));
  const [name] = alike;
  return name === undefined || alike.length > 1 ? call : { ...call, name };
}

/** Leftovers of the model's own format that servers leave after a name, such as `ls<|channel|>commentary`. */
const TOKENS = /<\|.*$/s;

/** Namespace prefixes that models learned to put before every tool name. */
const NAMESPACE = /^(?:functions?|tools?|default_api)[.:]/;

const plain = (name: string) => name.toLowerCase().replace(/[\s-]/g, "_");
