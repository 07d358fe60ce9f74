// The parts of a call that rules examine: the call itself, the readings of its commands, and the texts that a broad rule
// searches. Each part is computed when a rule needs it for the first time.

import type { ToolCall } from "../../core/message.ts";
import type { Tool } from "../../core/tool.ts";
import { type MentionedWord, partsOf } from "./shell/prefix.ts";
import { baseName, programOf } from "./shell/programs.ts";
import {
  allowableReading,
  MAX_COMMAND_CHARS,
  type PlainReading,
  plainReading,
} from "./shell/simple-command.ts";
import { type Understanding, understood } from "./shell/understood.ts";

/** The maximum work for the comparisons in one decision. One unit takes about one microsecond. */
const MAX_WORK = 20_000;

export interface Subject {
  readonly call: ToolCall;
  readonly tool: Tool | undefined;
  /**
   * Returns the strict reading of the call's command, or undefined if the call has no command or has
   * arguments that could change the command's effect.
   */
  plain(): PlainReading | undefined;
  /** Like `plain`, but adds a doubt unless the programs are known to run no other programs. */
  allowable(): PlainReading | undefined;
  /**
   * Returns why the commands that the call runs are unknown. Returns undefined if they are known or if the
   * call has no command.
   */
  doubt(): string | undefined;
  /**
   * Returns the input of a broad rule for commands: every known command, and the words of all other commands.
   */
  spoken(): readonly MentionedWords[];
  /** Returns the texts that a broad rule searches: the arguments, every text in them and every command. */
  texts(): readonly string[];
  /** Returns the arguments as JSON with sorted keys. */
  json(): string;
  /** Throws once the decision exceeds the maximum work. */
  spend(work: number): void;
  /** Begins another decision about the same call. */
  begin(): void;
}

interface MentionedWords {
  readonly words: readonly MentionedWord[];
  /** True if any of the words may be the name of a command. */
  readonly isLoose: boolean;
  /** The words that may be a program, without their folders. */
  readonly programs: readonly string[];
}

/** The folder where commands run if the backend defines none. */
const WORKDIR = "/workspace";

export function subjectOf(call: ToolCall, tool: Tool | undefined, workdir = WORKDIR): Subject {
  const lines = once(() => commandsIn(call.args));
  let spent = 0;
  const spend = (work: number) => {
    spent += work;
    if (spent > MAX_WORK) throw new Error("too much work for one decision");
  };
  const readings = once((): Understanding[] => {
    // Reads a list of words as one line and also reads each word separately.
    const isTooLong = lines().join("").length > 2 * MAX_COMMAND_CHARS;
    return isTooLong
      ? [{ doubt: `more than ${MAX_COMMAND_CHARS} characters` }]
      : lines().map((line) => understood(line, workdir));
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
    allowable: once(() => mapped(command(), (line) => allowableReading(line, workdir))),
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

function spokenOf(words: readonly MentionedWord[], isLoose: boolean): MentionedWords {
  const names = isLoose ? words : words.slice(0, 1);
  return { words, isLoose, programs: [...new Set(names.map(({ text }) => programOf(text)))] };
}

const spokenIn = (reading: Understanding): MentionedWords[] =>
  "commands" in reading ? reading.commands.map((words) => spokenOf(words, false)) : [];

/**
 * Returns all words of a line that is not understood, once with quotes removed and once with quotes replaced
 * by gaps.
 */
const looselySpoken = (line: string): MentionedWords[] =>
  [line.replace(/\\\n|['"\\]/g, ""), line.replace(/['"\\]/g, " ")].map((text) =>
    spokenOf(partsOf(text), true),
  );

/**
 * Returns the strings to match: the command as written, and the command with the path removed from its program
 * name.
 */
function textsOf({ words }: MentionedWords): string[] {
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

/** The arguments that do not change the effect of the command. Any other argument could. */
const HARMLESS = new Set(["command", "timeout"]);

function onlyCommand({ args }: ToolCall, tool: Tool | undefined): string | undefined {
  const isAlone = Object.keys(args).every((key) => HARMLESS.has(key));
  const isCommand = tool?.annotations.category === "execute" && isAlone;
  return isCommand && typeof args.command === "string" ? args.command : undefined;
}

/** The names that other tools use for command arguments. */
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
