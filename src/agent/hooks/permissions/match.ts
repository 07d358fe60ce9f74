// Matches rules against calls. Allow rules are strict: they match only calls that are fully understood. Deny and ask rules are
// broad: they match every call that might qualify. They also match every command that is not understood, unless another rule
// names it.

import { isDeepStrictEqual } from "node:util";
import { globMatcher } from "../../../lib/glob.ts";
import { type SafeRegex, sharedRegex } from "../../../lib/regex.ts";
import { isIn } from "../../../lib/search.ts";
import type { Matcher, Rule } from "./rule.ts";
import { beginsWith, mentions, wordsOf } from "./shell/prefix.ts";
import { programOf } from "./shell/programs.ts";
import type { PlainCommand } from "./shell/simple-command.ts";
import type { Subject } from "./subject.ts";

type Test = (subject: Subject) => boolean;

interface Condition {
  readonly strict: Test;
  /** The condition that a call must meet if doubts about its command are ignored. */
  readonly generous: Test;
  /** True if the condition is about commands. */
  readonly isAboutCommands?: true;
}

interface PrefixCondition extends Condition {
  begins(command: PlainCommand, subject: Subject): boolean;
}

export interface CompiledRule {
  readonly rule: Rule;
  /**
   * Never throws. A condition that fails or costs too much work does not match an allow rule, but matches all
   * other rules. The same applies to a command that is not understood, unless `isNamed` returns true.
   */
  matches(subject: Subject, isNamed?: () => boolean): boolean;
  /**
   * If the rule may match the command only because the command is not fully understood, returns the reason for
   * the doubt.
   */
  doubts(subject: Subject): string | undefined;
  /** True if the line is plain text and the rule's prefixes name each of its commands. */
  names(subject: Subject): boolean;
  readonly speaksOfCommands: boolean;
  /** Returns for which arguments the rule matches calls of this tool: all, some or none. */
  covers(subject: Subject): "all" | "some" | "none";
}

const compiled = new WeakMap<Rule, CompiledRule>();

/**
 * Returns the same object for the same rule, because compiling takes half a millisecond. Throws a
 * `SyntaxError` for a glob that `RuleSpec` would reject.
 */
export function compileRule(rule: Rule): CompiledRule {
  const known = compiled.get(rule) ?? newlyCompiled(rule);
  compiled.set(rule, known);
  return known;
}

function newlyCompiled(rule: Rule): CompiledRule {
  const { decision, matcher } = rule;
  const forTools = toolConditions(matcher);
  const forArguments = argumentConditions(matcher);
  const conditions = [...forTools, ...forArguments];
  const prefixes = matcher.command_prefix && prefixCondition(matcher.command_prefix);
  const isAboutCommands = forArguments.some((each) => each.isAboutCommands);
  const broadly = (subject: Subject, isNamed: () => boolean) => {
    const isDoubtful = isAboutCommands && subject.doubt() !== undefined && !isNamed();
    const wanted = isDoubtful ? conditions.filter((each) => !each.isAboutCommands) : conditions;
    return wanted.every(({ generous }) => generous(subject));
  };
  const attempt = (test: () => boolean, otherwise: boolean) => {
    try {
      return test();
    } catch {
      return otherwise;
    }
  };
  return {
    rule,
    speaksOfCommands: isAboutExecute(matcher),
    matches(subject, isNamed = () => false) {
      return decision === "allow"
        ? attempt(() => conditions.every(({ strict }) => strict(subject)), false)
        : attempt(() => broadly(subject, isNamed), true);
    },
    doubts(subject) {
      const isCertain = () => conditions.every(({ generous }) => generous(subject));
      return isAboutCommands && decision !== "allow" && !attempt(isCertain, false)
        ? subject.doubt()
        : undefined;
    },
    names(subject) {
      if (!prefixes || decision === "deny") return false;
      return attempt(() => {
        if (!forTools.every(({ strict }) => strict(subject))) return false;
        const reading = decision === "allow" ? subject.allowable() : subject.plain();
        if (!reading || !("commands" in reading)) return false;
        return reading.commands.every((command) => prefixes.begins(command, subject));
      }, false);
    },
    covers(subject) {
      if (!forTools.every(({ generous }) => generous(subject))) return "none";
      return forArguments.length === 0 ? "all" : "some";
    },
  };
}

/**
 * True if the condition concerns the `execute` tool. An expression may concern the arguments of other tools.
 */
function isAboutExecute({ command_prefix, regex, tool, category }: Matcher): boolean {
  if (command_prefix) return true;
  const isForExecute = tool === undefined || globMatcher(`./${tool}`)("execute");
  return regex !== undefined && isForExecute && (category ?? "execute") === "execute";
}

function toolConditions({ tool, category }: Pick<Matcher, "tool" | "category">): Condition[] {
  // A tool name is not a path, so `/` has no meaning in it.
  const isNamed = tool === undefined ? undefined : globMatcher(`./${tool}`);
  return [
    ...(isNamed ? [both(({ call }) => isNamed(call.name.replaceAll("/", "_")))] : []),
    ...(category ? [both((subject) => subject.tool?.annotations.category === category)] : []),
  ];
}

function argumentConditions(matcher: Matcher): Condition[] {
  const { command_prefix, regex, custom } = matcher;
  return [
    ...(command_prefix ? [prefixCondition(command_prefix)] : []),
    ...(regex === undefined ? [] : [regexCondition(regex)]),
    ...(matcher.arguments ? [equalCondition(matcher.arguments)] : []),
    ...(custom ? [both(({ call, tool }) => custom(call, tool))] : []),
  ];
}

const both = (test: Test): Condition => ({ strict: test, generous: test });

/**
 * Strict: every command of the line begins with a prefix. Broad: at least one command of the line begins with
 * a prefix.
 */
function prefixCondition(given: readonly string[]): PrefixCondition {
  const prefixes = given.map(wordsOf);
  const [exact, named] = [(name: string) => name, programOf].map((nameOf) =>
    Map.groupBy(prefixes, ([name = ""]) => nameOf(name)),
  );
  const begins = (command: PlainCommand, subject: Subject) => {
    const candidates = exact?.get(command[0]?.text ?? "") ?? [];
    subject.spend(1 + candidates.length);
    return candidates.some((prefix) => beginsWith(command, prefix));
  };
  return {
    isAboutCommands: true,
    begins,
    strict: every(begins),
    generous: (subject) =>
      subject.spoken().some(({ words, isLoose, programs }) => {
        subject.spend(programs.length / 4);
        return programs.some((program) => {
          const candidates = named?.get(program) ?? [];
          subject.spend(candidates.length * words.length);
          return candidates.some((prefix) => mentions(words, prefix, isLoose));
        });
      }),
  };
}

/** The work needed to search a text that is as long as the reach of an expression. */
const SEARCH_WORK = 30_000;
/** The number of characters that can be searched for one word at the cost of one unit of work. */
const FAST_CHARS = 1_000;

/**
 * Returns the text that every match begins with, if it can be read from the beginning of the expression.
 * Otherwise, returns an empty string.
 */
function beginningOf(expression: string): string {
  if (/[|\\]|\(\?/.test(expression)) return "";
  const literal = /^\^?([\w /:=,"'@%-]*)/.exec(expression)?.[1] ?? "";
  const next = expression.charAt(expression.indexOf(literal) + literal.length);
  return /[?*{]/.test(next) ? literal.slice(0, -1) : literal;
}

/**
 * Strict: the expression matches each command completely, or all of the arguments. Broad: it matches any
 * part.
 */
function regexCondition(expression: string): Condition {
  const beginning = beginningOf(expression);
  return {
    isAboutCommands: true,
    strict(subject) {
      const regex = sharedRegex(expression);
      const isWhole = (text: string) => {
        subject.spend(workOf(regex, text));
        return regex.matches(text);
      };
      if (!subject.allowable()) return isWhole(subject.json());
      return every(
        (command) =>
          command.every(({ isLiteral }) => isLiteral) &&
          isWhole(command.map(({ source }) => source).join(" ")),
      )(subject);
    },
    generous(subject) {
      const regex = sharedRegex(expression);
      return subject.texts().some((text) => {
        subject.spend(0.1 + text.length / FAST_CHARS);
        if (!isIn(text, beginning)) return false;
        subject.spend(workOf(regex, text));
        // A text that is too long to search may contain a match.
        return regex.test(text) || text.length > regex.reach;
      });
    },
  };
}

const workOf = ({ reach }: SafeRegex, text: string) =>
  Math.ceil(SEARCH_WORK * Math.min(1, text.length / reach));

function every(isAllowed: (command: PlainCommand, subject: Subject) => boolean): Test {
  return (subject) => {
    const reading = subject.allowable();
    return (
      reading !== undefined &&
      "commands" in reading &&
      reading.commands.every((each) => isAllowed(each, subject))
    );
  };
}

/** Strict: the call has no other arguments. */
function equalCondition(expected: Readonly<Record<string, unknown>>): Condition {
  return {
    strict: ({ call }) => isDeepStrictEqual(call.args, expected),
    generous: ({ call }) =>
      Object.entries(expected).every(([key, value]) => isDeepStrictEqual(call.args[key], value)),
  };
}
