// The scopes in which an answer can be remembered as a rule: for this call, for commands with the same beginning, or for all
// calls of the tool.

import type { RememberOption } from "../../../protocol/interrupt.ts";
import { compileRule } from "./match.ts";
import { literal, MAX_RULE_CHARS, RuleSpec } from "./rule.ts";
import { takesVerb } from "./shell/harmless.ts";
import type { PlainCommand } from "./shell/simple-command.ts";
import type { Subject } from "./subject.ts";

/**
 * The maximum number of prefixes in an offered rule. A person must be able to understand what the rule
 * allows. Longer lines are offered unchanged.
 */
const MAX_PREFIXES = 3;

/** Returns the options, narrowest first. A rule for any of them allows the call itself. */
export function rememberOptions(subject: Subject): RememberOption[] {
  const { call } = subject;
  const prefixes = prefixesOf(subject);
  return [
    ...(JSON.stringify(call.args).length <= MAX_RULE_CHARS ? [{ remember_as: "call" as const }] : []),
    ...(prefixes ? [{ remember_as: "command" as const, command_prefix: prefixes }] : []),
    { remember_as: "tool" },
  ];
}

/** Returns the prefix of each command of the line, or undefined for a line that no such rule would allow. */
function prefixesOf(subject: Subject): string[] | undefined {
  const reading = subject.allowable();
  if (!reading || !("commands" in reading)) return undefined;
  const command_prefix = [...new Set(reading.commands.map(prefixOf))];
  if (command_prefix.length > MAX_PREFIXES) return undefined;
  const rule = RuleSpec.safeParse({ allow: literal(subject.call.name), command_prefix }).data;
  return rule && compileRule(rule).matches(subject) ? command_prefix : undefined;
}

/**
 * Returns the program and, for programs with subcommands, the subcommand: `echo`, `git status`, `npm run
 * build`.
 */
function prefixOf([program, ...args]: PlainCommand): string {
  const name = program?.text ?? "";
  if (!takesVerb(name)) return name;
  const verb = args.findIndex(({ text }) => !text.startsWith("-"));
  const isScript = args[verb]?.text === "run";
  const words = args.slice(0, verb + (isScript ? 2 : 1)).map(({ text }) => text);
  return [name, ...words].join(" ");
}
