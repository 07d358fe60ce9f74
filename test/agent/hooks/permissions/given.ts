// Calls, tools and policies for the tests of permissions.

import { z } from "zod";
import type { ToolCall } from "../../../../src/agent/core/message.ts";
import { defineTool, type Tool, type ToolAnnotations } from "../../../../src/agent/core/tool.ts";
import {
  decide,
  type Mode,
  makePolicy,
  type Verdict,
} from "../../../../src/agent/hooks/permissions/policy.ts";
import { type Rule, type RuleSpec, ruleOf } from "../../../../src/agent/hooks/permissions/rule.ts";

export type Spec = z.input<typeof RuleSpec>;

const ANNOTATIONS: Readonly<Record<string, ToolAnnotations>> = {
  execute: { category: "execute" },
  write_file: { category: "write" },
  delete_file: { category: "write", destructive: true },
  read_file: { category: "read", readOnly: true, requiresPermission: false },
  wipe: { category: "network", readOnly: true, destructive: true },
  look_up: { category: "network", readOnly: true },
  write_todos: { category: "plan", requiresPermission: false },
};

export const toolNamed = (name: string): Tool =>
  defineTool({
    ...{ name, description: "", parameters: z.looseObject({}), annotations: ANNOTATIONS[name] ?? {} },
    execute: () => "done",
  });

export const callOf = (name: string, args: ToolCall["args"] = {}): ToolCall => ({ id: "call_1", name, args });

/** Only a complete one may have a condition of the program's own. */
const isComplete = (rule: Spec | Rule): rule is Rule =>
  ["id", "scope", "priority", "matcher", "decision"].every((key) => key in rule);

export const policyOf = (rules: readonly (Spec | Rule)[], mode: Mode = "default") =>
  makePolicy({
    ...{ mode, agent: "coder", session: "th_1" },
    rules: rules.map((rule) => (isComplete(rule) ? rule : ruleOf(rule))),
  });

/** What becomes of a call. */
export function verdict(
  { name, args }: Pick<ToolCall, "name" | "args">,
  rules: readonly (Spec | Rule)[],
  mode?: Mode,
): Verdict {
  return decide(callOf(name, args), toolNamed(name), policyOf(rules, mode));
}

/** What becomes of a command. */
export const verdictOn = (command: string, rules: readonly Spec[], mode?: Mode): Verdict =>
  verdict({ name: "execute", args: { command } }, rules, mode);
