// The strict reading of a command line, for rules that allow. It supports words, simple quotes, `;` `&` `&&` `||` `|`, and
// redirections that touch no file. Anything else makes the whole line doubtful. Therefore, every shell reads an accepted
// line in the same way and runs only the returned commands. The time is linear in the length of the text. Never throws.

import { isHarmless, isKnown, obeysInput } from "./harmless.ts";
import { isNeverAllowed, isRunner } from "./programs.ts";
import { type CommandParts, isPlaceThatRuns, watchTargets } from "./targets.ts";

/** The maximum number of characters in a line. */
export const MAX_COMMAND_CHARS = 32_768;

export interface PlainWord {
  readonly text: string;
  /** The word as written, including quotes. */
  readonly source: string;
  /** True if the shell uses exactly the word's text because the word is not a file name pattern. */
  readonly isLiteral: boolean;
  readonly isOpaque: false;
  readonly isWhole: boolean;
}
export type PlainCommand = readonly PlainWord[];

/** `doubt` completes the sentence "The command is not fully understood: it has …". */
export type PlainReading =
  | {
      readonly commands: readonly PlainCommand[];
      /** The commands that read the output of another command. */
      readonly fed: ReadonlySet<PlainCommand>;
    }
  | { readonly doubt: string };

/**
 * Returns the strict reading of a command line, as an allow rule needs it. Each program either is known to
 * run no other program with these arguments, or is named by the rule.
 */
export function allowableReading(line: string, workdir: string): PlainReading {
  const reading = plainReading(line);
  if ("doubt" in reading) return reading;
  const changesWhatRuns = watchTargets(workdir);
  for (const command of reading.commands) {
    const doubt = doubtAbout(command, { changesWhatRuns, isFed: reading.fed.has(command) });
    if (doubt !== undefined) return { doubt };
  }
  return reading;
}

const START = /[ \t\n]*/y;
const BLANK = /[ \t]+/y;
const END = /[ \t\n]*$/y;
const SEPARATOR = /(?:&&|\|\||[;&|])(?![;&|<>])/y;
/** Redirections between the three standard streams, or to and from `/dev/null`. */
const QUIET = /(?:[012]?>&[012]|[012]?>[ \t]?\/dev\/null|<[ \t]?\/dev\/null)(?![^ \t\n;&|])/y;

/** `@{…}` names a revision. No shell expands it unless it contains a comma. */
const BARE = /(?:@\{-?\w+\}|[\p{L}\p{M}\p{N}_.,/:@%+=^~*?[\]-])+/uy;
/** A tilde at the start of a word or a value means a folder. */
const PATTERN = /[*?[\]]|^~|[=:]~/;
const SINGLE = /'[^']*'/y;
const DOUBLE = /"(?:[^"\\$`]|\\[^\n])*"/y;

export function plainReading(line: string): PlainReading {
  if (line.length > MAX_COMMAND_CHARS) return { doubt: `more than ${MAX_COMMAND_CHARS} characters` };
  if (!line.isWellFormed() || /[^\P{Cc}\t\n]/u.test(line)) return { doubt: "a control character" };
  const commands: PlainWord[][] = [];
  const fed = new Set<PlainCommand>();
  let words: PlainWord[] = [];
  let separator = "";
  for (let at = end(START, line, 0); end(END, line, at) !== line.length; ) {
    const next = end(BLANK, line, at) || end(QUIET, line, at);
    if (next > at) {
      at = next;
      continue;
    }
    const over = end(SEPARATOR, line, at);
    if (over > at) {
      if (words.length === 0) return { doubt: "a command without words" };
      commands.push(words);
      words = [];
      separator = line.slice(at, over);
      if (separator === "|") fed.add(words);
      at = over;
      continue;
    }
    const word = wordAt(line, at);
    at += word.source.length;
    const char = line.charAt(at);
    if (!" \t\n;&|".includes(char) || word.source === "") return { doubt: nameOf(char) };
    words.push(word);
  }
  if (words.length > 0) commands.push(words);
  else if (separator !== ";" && separator !== "&") return { doubt: "a command without words" };
  const doubt = commands.map(doubtAboutName).find((each) => each !== undefined);
  return doubt === undefined ? { commands, fed } : { doubt };
}

/** Returns the end of the token that begins at `at`, or 0 if no token begins there. */
function end(token: RegExp, text: string, at: number): number {
  token.lastIndex = at;
  return token.test(text) ? token.lastIndex : 0;
}

/** Reads the word at `start`. Its source is empty when no word begins there. */
function wordAt(line: string, start: number): PlainWord {
  let text = "";
  let isLiteral = true;
  for (let at = start; ; ) {
    const next = end(BARE, line, at) || end(SINGLE, line, at) || end(DOUBLE, line, at);
    if (next <= at)
      return { text, source: line.slice(start, at), isLiteral, isOpaque: false, isWhole: false };
    const piece = line.slice(at, next);
    if (piece.startsWith("'")) text += piece.slice(1, -1);
    else if (piece.startsWith('"')) text += piece.slice(1, -1).replace(/\\(["\\$`])/g, "$1");
    else {
      if (PATTERN.test(text.slice(-1) + piece)) isLiteral = false;
      text += piece;
    }
    at = next;
  }
}

const NAMES: ReadonlyMap<string, string> = new Map([
  ["$", "an expansion (`$`)"],
  ["`", "a substitution (`` ` ``)"],
  ["\\", "a backslash"],
  ["<", "a redirection"],
  [">", "a redirection"],
  ["(", "a subshell or a function"],
  [")", "a subshell or a function"],
  ["{", "braces"],
  ["}", "braces"],
  ["#", "a comment"],
  ["\n", "several lines"],
  ["'", "a quote that is not closed"],
  ['"', "an expansion or an open end inside quotes"],
]);

const nameOf = (char: string) => NAMES.get(char) ?? `\`${char}\``;

/**
 * Returns a doubt if a command's name is not written literally, because the names of dangerous programs must
 * be recognizable.
 */
function doubtAboutName([name]: PlainCommand): string | undefined {
  if (name === undefined) return "a command without words";
  if (!name.isLiteral || name.source !== name.text) return "a command whose name is quoted or a pattern";
  return name.text.includes("=") ? "an assignment before a command" : undefined;
}

/** Words that no program splits. */
const SIMPLE = /^[\p{L}\p{N}_.,/:@%+=^~-]*$/u;

/**
 * True for an argument that an unknown program may have. Other arguments could make it execute or write the
 * files that they name.
 */
const isPlain = ({ text, isLiteral }: PlainWord) =>
  isLiteral && SIMPLE.test(text) && !isRunner(text) && !isPlaceThatRuns(text);

interface CommandContext {
  changesWhatRuns(command: CommandParts): boolean;
  readonly isFed: boolean;
}

function doubtAbout(
  [name, ...args]: PlainCommand,
  { changesWhatRuns, isFed }: CommandContext,
): string | undefined {
  if (name === undefined) return "a command without words";
  if (isNeverAllowed(name.text)) return `\`${name.text}\`, which may run anything`;
  if (changesWhatRuns({ name: name.text, args, outputs: [] })) return "a file that may determine what runs";
  if (isFed && obeysInput(name.text, args)) return `\`${name.text}\`, which may run its input`;
  if (isHarmless(name.text, args)) return undefined;
  if (isKnown(name.text) || !args.every(isPlain))
    return `\`${name.text}\` with arguments that may make it run or write something else`;
  return undefined;
}
