// Matches rules against calls. Allow rules are strict: what is not fully understood does not match. Deny and ask rules are
// broad: what might match does, and so does every command that is not understood, unless another rule names it.

import { isDeepStrictEqual } from "node:util";
import type { ToolCall } from "../../core/message.ts";
import type { Tool } from "../../core/tool.ts";
import { globMatcher } from "../../lib/glob.ts";
import { type SafeRegex, sharedRegex } from "../../lib/regex.ts";
import type { Matcher, Rule } from "./rule.ts";
import { beginsWith, type MentionedWord, mentions, partsOf, wordsOf } from "./shell/prefix.ts";
import { baseName, programOf } from "./shell/programs.ts";
import {
  allowableReading,
  MAX_COMMAND_CHARS,
  type PlainCommand,
  type PlainReading,
  plainReading,
} from "./shell/simple-command.ts";
import { type Understanding, understood } from "./shell/understood.ts";

type Test = (subject: Subject) => boolean;

interface Condition {
  readonly strict: Test;
  /** Without the doubts that a command leaves. */
  readonly generous: Test;
  /** It speaks of commands. */
  readonly isAboutCommands?: true;
}

interface PrefixCondition extends Condition {
  begins(command: PlainCommand, subject: Subject): boolean;
}

export interface CompiledRule {
  readonly rule: Rule;
  /**
   * Throws nothing: a condition that fails or costs too much work does not match an allow rule and matches the others. A command
   * that is not understood matches them as well, unless it `isNamed` by a rule.
   */
  matches(subject: Subject, isNamed?: () => boolean): boolean;
  /** Why the command may match it, although nothing shows that it does. */
  doubts(subject: Subject): string | undefined;
  /** Whether its prefixes name each command of the line, which is written out plainly. */
  names(subject: Subject): boolean;
  /** Whether it matches calls of this tool for all arguments, for some, or for none. */
  covers(subject: Subject): "all" | "some" | "none";
}

const compiled = new WeakMap<Rule, CompiledRule>();

/** The same one for the same rule: it takes half a millisecond. Throws a `SyntaxError` for a glob that `RuleSpec` would not have let pass. */
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
    ...(command_prefix ? [prefixCondition(command_prefix)] : []),
    ...(regex === undefined ? [] : [regexCondition(regex)]),
    ...(matcher.arguments ? [equalCondition(matcher.arguments)] : []),
    ...(custom ? [both(({ call, tool }) => custom(call, tool))] : []),
  ];
}

const both = (test: Test): Condition => ({ strict: test, generous: test });

/** Strict: each command of the line begins with a prefix. Broad: one that the line runs does. */
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

/** What counts for a search of all that is in an expression's reach. */
const SEARCH_WORK = 30_000;
/** Looking for one word in so many characters is a piece of work. */
const FAST_CHARS = 1_000;

/** What every match contains, if that can be told from the expression's beginning. */
function beginningOf(expression: string): string {
  if (/[|\\]|\(\?/.test(expression)) return "";
  const literal = /^\^?([\w /:=,"'@%-]*)/.exec(expression)?.[1] ?? "";
  const next = expression.charAt(expression.indexOf(literal) + literal.length);
  return /[?*{]/.test(next) ? literal.slice(0, -1) : literal;
}

/** Strict: matches the whole of each command, or of the arguments. Broad: matches a part. */
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
        if (!text.includes(beginning)) return false;
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
    const reading = subject.allowable();
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

/** Limits the comparisons of one decision: microseconds, roughly. */
const MAX_WORK = 20_000;

export interface Subject {
  readonly call: ToolCall;
  readonly tool: Tool | undefined;
  /** The strict reading of its command; undefined unless the call is only a command. */
  plain(): PlainReading | undefined;
  /** The same, with a doubt unless its programs are known to run no others. */
  allowable(): PlainReading | undefined;
  /** Why it is not known what its commands run; undefined when it is, or when it has none. */
  doubt(): string | undefined;
  /** The input of a broad rule for commands: every known command, and the words of the others. */
  spoken(): readonly Spoken[];
  /** What a broad rule searches: the arguments, every text in them, every command. */
  texts(): readonly string[];
  /** The arguments as JSON, their keys in order. */
  json(): string;
  /** Throws once the decision has taken too much work. */
  spend(work: number): void;
  /** Another decision about the same call begins. */
  begin(): void;
}

interface Spoken {
  readonly words: readonly MentionedWord[];
  /** Any of the words may be the name of a command. */
  readonly isLoose: boolean;
  /** Those that may be one, without their folders. */
  readonly programs: readonly string[];
}

export function subjectOf(call: ToolCall, tool: Tool | undefined): Subject {
  const lines = once(() => commandsIn(call.args));
  let spent = 0;
  const spend = (work: number) => {
    spent += work;
    if (spent > MAX_WORK) throw new Error("too much work for one decision");
  };
  const readings = once((): Understanding[] => {
    // A list of words is read as one line, and each word by itself.
    const isTooLong = lines().join("").length > 2 * MAX_COMMAND_CHARS;
    return isTooLong ? [{ doubt: `more than ${MAX_COMMAND_CHARS} characters` }] : lines().map(understood);
  });
  const command = once(() => onlyCommand(call, tool));
  const plain = once(() => mapped(command(), plainReading));
  const doubt = once(() => readings().flatMap((each) => ("doubt" in each ? [each.doubt] : []))[0]);
  const spoken = once(() => [
    ...readings().flatMap(spokenIn),
    ...(doubt() === undefined ? [] : lines().flatMap(looselySpoken)),
  ]);
  const json = once(() => JSON.stringify(ordered(call.args)));
  return {
    call,
    tool,
    spend,
    begin() {
      spent = 0;
    },
    plain,
    allowable: once(() => mapped(command(), allowableReading)),
    doubt,
    spoken,
    texts: once(() => [
      ...new Set([
        ...leaves(call.args),
        ...(command() === undefined ? [json()] : []),
        ...spoken().flatMap(textsOf),
      ]),
    ]),
    json,
  };
}

const mapped = <T, R>(value: T | undefined, change: (value: T) => R): R | undefined =>
  value === undefined ? undefined : change(value);

function spokenOf(words: readonly MentionedWord[], isLoose: boolean): Spoken {
  const names = isLoose ? words : words.slice(0, 1);
  return { words, isLoose, programs: [...new Set(names.map(({ text }) => programOf(text)))] };
}

const spokenIn = (reading: Understanding): Spoken[] =>
  "commands" in reading ? reading.commands.map((words) => spokenOf(words, false)) : [];

/** All words of a line that is not understood, with quotes taken away, and with quotes as gaps. */
const looselySpoken = (line: string): Spoken[] =>
  [line.replace(/\\\n|['"\\]/g, ""), line.replace(/['"\\]/g, " ")].map((text) =>
    spokenOf(partsOf(text), true),
  );

/** As texts to search: as it is, and without the folder of its program. */
function textsOf({ words }: Spoken): string[] {
  const [name = "", ...args] = words.map(({ text }) => text);
  return [[name, ...args].join(" "), [baseName(name), ...args].join(" ")];
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
