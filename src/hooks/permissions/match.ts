// Matches rules against calls. Allow rules are strict: what is not fully understood does not match. Deny and ask rules are
// broad: what might match does.

import { isDeepStrictEqual } from "node:util";
import type { ToolCall } from "../../core/message.ts";
import type { Tool } from "../../core/tool.ts";
import { globMatcher } from "../../lib/glob.ts";
import { type SafeRegex, safeRegex } from "../../lib/regex.ts";
import type { Matcher, Rule } from "./rule.ts";
import { textsOf, type WideCommand, wideReading } from "./shell/broad-commands.ts";
import { beginsWith, isWorthReading, mentions, wordsOf } from "./shell/prefix.ts";
import {
  MAX_COMMAND_CHARS,
  type PlainCommand,
  type PlainReading,
  plainReading,
} from "./shell/simple-command.ts";

type Test = (subject: Subject) => boolean;

interface Condition {
  readonly strict: Test;
  readonly generous: Test;
}

export interface CompiledRule {
  readonly rule: Rule;
  /** Throws nothing: a condition that fails or costs too much work does not match an allow rule and matches the others. */
  matches(subject: Subject): boolean;
  /** Whether it matches calls of this tool for all arguments, for some, or for none. */
  covers(subject: Subject): "all" | "some" | "none";
}

/** Throws a `SyntaxError` for a glob that `RuleSpec` would not have let pass. */
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
  // A tool name is not a path: `/` has no meaning in it.
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
    ...(regex === undefined ? [] : [regexCondition(regex)]),
    ...(matcher.arguments ? [equalCondition(matcher.arguments)] : []),
    ...(custom ? [both(({ call, tool }) => custom(call, tool))] : []),
  ];
}

const both = (test: Test): Condition => ({ strict: test, generous: test });

/** Strict: each command of the line begins with a prefix. Broad: one that the line may contain does. */
function prefixCondition(prefixes: readonly (readonly string[])[]): Condition {
  return {
    strict: every((command, subject) => {
      subject.spend(prefixes.length);
      return prefixes.some((prefix) => beginsWith(command, prefix));
    }),
    generous(subject) {
      const commands = subject.wide();
      if (!commands) return true;
      return commands.some((command) => prefixes.some((prefix) => isMentioned(command, prefix, subject)));
    },
  };
}

function isMentioned(command: WideCommand, prefix: readonly string[], subject: Subject): boolean {
  subject.spend(isWorthReading(command, prefix) ? command.words.length : 1);
  return mentions(command, prefix);
}

/** What counts for a search of all that is in an expression's reach, and for the largest expression itself. */
const SEARCH_WORK = 30_000;
const COMPILE_WORK = 4_000;
/** The reach of the largest expression. */
const SHORTEST_REACH = 800;

/** Strict: matches the whole of each command, or of the arguments. Broad: matches a part. Compiled at its first use. */
function regexCondition(expression: string): Condition {
  let compiled: SafeRegex | undefined;
  const regexFor = (subject: Subject) => {
    compiled ??= safeRegex(expression);
    subject.spend(Math.ceil((COMPILE_WORK * SHORTEST_REACH) / compiled.reach));
    return compiled;
  };
  return {
    strict(subject) {
      const regex = regexFor(subject);
      const isWhole = (text: string) => {
        subject.spend(workOf(regex, text));
        return regex.matches(text);
      };
      if (!subject.plain()) return isWhole(subject.json());
      return every(
        (command) =>
          command.every(({ isLiteral }) => isLiteral) &&
          isWhole(command.map(({ source }) => source).join(" ")),
      )(subject);
    },
    generous(subject) {
      const regex = regexFor(subject);
      if (!subject.wide()) return true;
      return subject.texts().some((text) => {
        subject.spend(workOf(regex, text));
        // A text too long to search might contain it.
        return regex.test(text) || text.length > regex.reach;
      });
    },
  };
}

const workOf = ({ reach }: SafeRegex, text: string) =>
  Math.ceil(SEARCH_WORK * Math.min(1, text.length / reach));

function every(isAllowed: (command: PlainCommand, subject: Subject) => boolean): Test {
  return (subject) => {
    const reading = subject.plain();
    return (
      reading !== undefined &&
      "commands" in reading &&
      reading.commands.every((each) => isAllowed(each, subject))
    );
  };
}

/** Strict: no other arguments. */
function equalCondition(expected: Readonly<Record<string, unknown>>): Condition {
  return {
    strict: ({ call }) => isDeepStrictEqual(call.args, expected),
    generous: ({ call }) =>
      Object.entries(expected).every(([key, value]) => isDeepStrictEqual(call.args[key], value)),
  };
}

/** Limits the comparisons of one decision, to some tenths of a second. */
const MAX_WORK = 500_000;

export interface Subject {
  readonly call: ToolCall;
  readonly tool: Tool | undefined;
  /** The strict reading of its command; undefined unless the call is only a command. */
  plain(): PlainReading | undefined;
  /** The broad reading: every command it may contain; undefined when it is too long. */
  wide(): readonly WideCommand[] | undefined;
  /** What a broad rule searches: the arguments, every text in them, every command. */
  texts(): readonly string[];
  /** The arguments as JSON, their keys in order. */
  json(): string;
  /** Throws once the decision has taken too much work. */
  spend(work: number): void;
}

export function subjectOf(call: ToolCall, tool: Tool | undefined): Subject {
  const lines = commandsIn(call.args);
  // A list of words is read as one line, and each word by itself.
  const isReadable =
    lines.every(({ length }) => length <= MAX_COMMAND_CHARS) &&
    lines.join("").length <= 2 * MAX_COMMAND_CHARS;
  let spent = 0;
  const subject: Subject = {
    call,
    tool,
    spend(work) {
      spent += work;
      if (spent > MAX_WORK) throw new Error("too much work for one decision");
    },
    plain: once(() => {
      const command = onlyCommand(call, tool);
      return command === undefined ? undefined : plainReading(command);
    }),
    wide: once(() => (isReadable ? lines.flatMap(wideReading) : undefined)),
    texts: once(() => [
      ...new Set([...leaves(call.args), subject.json(), ...(subject.wide() ?? []).flatMap(textsOf)]),
    ]),
    json: once(() => JSON.stringify(ordered(call.args))),
  };
  return subject;
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** An argument besides these could change what the command does. */
const HARMLESS = new Set(["command", "timeout"]);

function onlyCommand({ args }: ToolCall, tool: Tool | undefined): string | undefined {
  const isAlone = Object.keys(args).every((key) => HARMLESS.has(key));
  const isCommand = tool?.annotations.category === "execute" && isAlone;
  return isCommand && typeof args.command === "string" ? args.command : undefined;
}

/** Names that other tools use. */
const COMMAND_ARGUMENTS = ["command", "commands", "cmd", "script"];

function commandsIn(args: ToolCall["args"]): string[] {
  return COMMAND_ARGUMENTS.flatMap((key) => {
    const value = args[key];
    if (typeof value === "string") return [value];
    const words = Array.isArray(value) ? value.filter((word) => typeof word === "string") : [];
    return words.length > 0 ? [words.join(" "), ...words] : [];
  });
}

function leaves(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [];
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, ordered(each)]));
}
