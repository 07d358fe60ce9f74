// Defines a command of `skein`, parses its arguments and prints its help.

import { parseArgs } from "node:util";
import { AppError, messageOf } from "../../agent/core/errors.ts";
import type { Texts } from "./texts/en.ts";
import { t } from "./texts.ts";

/** An option without `value` is a flag. */
export interface Option {
  /** The placeholder of the value in the help, as in `--port NUMBER`. */
  readonly value?: string;
  readonly about: (texts: Texts) => string;
  /** The command refuses to run without this option. */
  readonly required?: true;
}
export type Options = Readonly<Record<string, Option>>;

export type OptionValues<O extends Options> = {
  readonly [Name in keyof O]?: (O[Name] extends { value: string } ? string : boolean) | undefined;
};

export interface Command<O extends Options = Options> {
  /** `keys create` */
  readonly name: string;
  /** The placeholder of the argument after the name: `ID`, or `[MESSAGE]` if it is optional. */
  readonly argument?: string;
  readonly about: (texts: Texts) => string;
  readonly options: O;
  /** Returns the exit code. */
  run(values: OptionValues<O>, argument: string | undefined): Promise<number>;
}

/** Infers the types of the options. */
export const command = <const O extends Options>(definition: Command<O>): Command =>
  definition as unknown as Command;

export interface Call {
  readonly command: Command;
  readonly values: OptionValues<Options>;
  readonly argument: string | undefined;
}

/**
 * Parses the process's arguments. Returns a call, or the text to print for help and version. Throws `invalid_request`
 * with the usage of the command or of similar commands.
 */
export function readCall(args: readonly string[], commands: readonly Command[], head: string): Call | string {
  const words = leadingWords(args);
  const found = longest(commands, words);
  const group = commands.filter(({ name }) => name.startsWith(`${words[0]} `));
  if (!found && words.length === 0 && (args.length === 0 || asksForHelp(args)))
    return summary(commands, head);
  if (!found && group.length > 0) {
    if (asksForHelp(args)) return listed(group);
    throw new AppError("invalid_request", `${t().help.needsOne(words[0] ?? "")}\n\n${listed(group)}`);
  }
  if (!found)
    throw new AppError(
      "invalid_request",
      `${t().help.unknownCommand(words.join(" ") || (args[0] ?? ""))}\n\n${summary(commands, head)}`,
    );
  const rest = args.slice(found.name.split(" ").length);
  return asksForHelp(rest) ? helpOf(found) : { command: found, ...readOptions(found, rest) };
}

const asksForHelp = (args: readonly string[]) => args.includes("--help") || args.includes("-h");

/** Returns the words before the first option. */
function leadingWords(args: readonly string[]): readonly string[] {
  const end = args.findIndex((arg) => arg.startsWith("-"));
  return end === -1 ? args : args.slice(0, end);
}

function longest(commands: readonly Command[], words: readonly string[]): Command | undefined {
  const line = `${words.join(" ")} `;
  return commands
    .filter(({ name }) => line.startsWith(`${name} `))
    .reduce<Command | undefined>(
      (best, each) => (best && best.name.length > each.name.length ? best : each),
      undefined,
    );
}

function readOptions(found: Command, args: readonly string[]): Omit<Call, "command"> {
  const types = Object.entries(found.options).map(
    ([name, { value }]) => [name, { type: value === undefined ? "boolean" : "string" }] as const,
  );
  const { values, positionals } = parsed(found, args, Object.fromEntries(types));
  const [argument, ...more] = positionals;
  const wanted = found.argument;
  if (more.length > 0 || (argument !== undefined && wanted === undefined))
    throw misuse(
      found,
      `${t().help.unexpected(more[0] ?? argument ?? "")}${wanted ? quoteHint(wanted) : ""}`,
    );
  if (argument === undefined && wanted !== undefined && !wanted.startsWith("["))
    throw misuse(found, t().help.missingArgument(wanted));
  for (const [name, { required }] of Object.entries(found.options))
    if (required && !values[name]) throw misuse(found, t().help.missingOption(name));
  return { values, argument };
}

const quoteHint = (wanted: string) => (wanted === "[MESSAGE]" ? t().help.quoteMessage : "");

function parsed(
  found: Command,
  args: readonly string[],
  options: Record<string, { type: "boolean" | "string" }>,
) {
  try {
    const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options });
    return { values: values as OptionValues<Options>, positionals };
  } catch (error) {
    throw misuse(found, t().help.option(messageOf(error).split(". ")[0] ?? ""), error);
  }
}

const misuse = (found: Command, what: string, cause?: unknown) =>
  new AppError("invalid_request", `${what}\n\n${helpOf(found)}`, { cause });

const usageOf = ({ name, argument }: Command) => ["skein", name, argument].filter(Boolean).join(" ");

function helpOf(found: Command): string {
  const options = Object.entries(found.options).map(
    ([name, { value, about }]) => [`--${name}${value ? ` ${value}` : ""}`, about(t())] as const,
  );
  return [`${usageOf(found)}: ${found.about(t())}`, ...(options.length > 0 ? ["", table(options)] : [])].join(
    "\n",
  );
}

const listed = (commands: readonly Command[]) =>
  table(commands.map((each) => [usageOf(each), each.about(t())] as const));

const summary = (commands: readonly Command[], head: string) =>
  `${head}\n\n${listed(commands)}\n\n${t().help.ofOne}`;

function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join("\n");
}
