// Whether a rule speaks of a call. What allows is read strictly: what is not fully understood does not match.
// What denies or asks is read generously: what might match does.

import { isDeepStrictEqual } from "node:util";
import { globMatcher } from "../../lib/glob.ts";
import { type SafeRegex, safeRegex } from "../../lib/regex.ts";
import type { Matcher, Rule } from "./rule.ts";
import type { PlainCommand } from "./shell/plain.ts";
import { beginsWith, mentions, wordsOf } from "./shell/prefix.ts";
import type { Subject } from "./subject.ts";

type Test = (subject: Subject) => boolean;

interface Condition {
  readonly strict: Test;
  readonly generous: Test;
}

export interface CompiledRule {
  readonly rule: Rule;
  /** Throws nothing: a condition that fails is not met by what allows, and is met by what does not. */
  matches(subject: Subject): boolean;
  /** Whether it speaks of all calls of this tool, whatever their arguments, of some, or of none. */
  covers(subject: Subject): "all" | "some" | "none";
}

/** Throws a `SyntaxError` for a glob or an expression that `RuleSpec` would not have let pass. */
export function compileRule(rule: Rule): CompiledRule {
  const { decision, matcher } = rule;
  const forTools = toolConditions(matcher);
  const forArguments = argumentConditions(matcher);
  const conditions = [...forTools, ...forArguments];
  return {
    rule,
    matches(subject) {
      try {
        return conditions.every((each) => (decision === "allow" ? each.strict : each.generous)(subject));
      } catch {
        return decision !== "allow";
      }
    },
    covers(subject) {
      if (!forTools.every(({ generous }) => generous(subject))) return "none";
      return forArguments.length === 0 ? "all" : "some";
    },
  };
}

function toolConditions({ tool, category }: Pick<Matcher, "tool" | "category">): Condition[] {
  // A name is one name, not a path: a `/` in it has no meaning.
  const isNamed = tool === undefined ? undefined : globMatcher(`./${tool}`);
  return [
    ...(isNamed ? [both(({ call }) => isNamed(call.name.replaceAll("/", "_")))] : []),
    ...(category ? [both((subject) => subject.tool?.annotations.category === category)] : []),
  ];
}

function argumentConditions(matcher: Matcher): Condition[] {
  const { command_prefix, regex, custom } = matcher;
  return [
    ...(command_prefix ? [prefixCondition(command_prefix.map(wordsOf))] : []),
    ...(regex === undefined ? [] : [regexCondition(safeRegex(regex))]),
    ...(matcher.arguments ? [equalCondition(matcher.arguments)] : []),
    ...(custom ? [both(({ call, tool }) => custom(call, tool))] : []),
  ];
}

const both = (test: Test): Condition => ({ strict: test, generous: test });

/** To allow, each command of the line must begin so; otherwise one that may be in it is enough. */
function prefixCondition(prefixes: readonly (readonly string[])[]): Condition {
  return {
    strict: every((command) => prefixes.some((prefix) => beginsWith(command, prefix))),
    generous(subject) {
      const commands = subject.wide();
      if (!commands) return true;
      return commands.some((command) => prefixes.some((prefix) => mentions(command, prefix)));
    },
  };
}

/** To allow, it must be the whole of each command, as it is written, or of the arguments. */
function regexCondition(regex: SafeRegex): Condition {
  const isWhole = every(
    (command) =>
      command.every(({ isLiteral }) => isLiteral) &&
      regex.matches(command.map(({ source }) => source).join(" ")),
  );
  return {
    strict: (subject) => (subject.plain() ? isWhole(subject) : regex.matches(subject.json())),
    // What is too long to be searched whole might hold it.
    generous: (subject) =>
      !subject.wide() || subject.texts().some((text) => regex.test(text) || text.length > regex.reach),
  };
}

function every(isAllowed: (command: PlainCommand) => boolean): Test {
  return (subject) => {
    const reading = subject.plain();
    return reading !== undefined && "commands" in reading && reading.commands.every(isAllowed);
  };
}

/** To allow, there must be no others. */
function equalCondition(expected: Readonly<Record<string, unknown>>): Condition {
  return {
    strict: ({ call }) => isDeepStrictEqual(call.args, expected),
    generous: ({ call }) =>
      Object.entries(expected).every(([key, value]) => isDeepStrictEqual(call.args[key], value)),
  };
}
