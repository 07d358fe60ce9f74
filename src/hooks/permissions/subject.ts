// A call as the rules see it. Its command is read only when a rule asks for it, and once for all rules.

import type { ToolCall } from "../../core/message.ts";
import type { Tool } from "../../core/tool.ts";
import { MAX_COMMAND_CHARS, type PlainReading, plainReading } from "./shell/plain.ts";
import { textsOf, type WideCommand, wideReading } from "./shell/wide.ts";

/** Comparisons of a word that one decision may take, by all rules together: some tenths of a second at the worst. */
const MAX_WORK = 500_000;

export interface Subject {
  readonly call: ToolCall;
  readonly tool: Tool | undefined;
  /** Its command read strictly; undefined unless the call is nothing but a command. */
  plain(): PlainReading | undefined;
  /** Every command that may be in it; undefined when it is too long to tell. */
  wide(): readonly WideCommand[] | undefined;
  /** What a generous rule searches: the arguments, every text in them, every command. */
  texts(): readonly string[];
  /** The arguments as JSON, their keys in order. */
  json(): string;
  /** Throws once the decision has taken more work than it may: what follows is not compared. */
  spend(work: number): void;
}

export function subjectOf(call: ToolCall, tool: Tool | undefined): Subject {
  const lines = commandsIn(call.args);
  // A list of words is read as one line, and each word for itself.
  const isReadable =
    lines.every(({ length }) => length <= MAX_COMMAND_CHARS) &&
    lines.join("").length <= 2 * MAX_COMMAND_CHARS;
  let spent = 0;
  const subject: Subject = {
    ...{ call, tool },
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

/** Where tools of others have theirs. */
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
