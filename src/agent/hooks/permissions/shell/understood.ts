// Finds the commands that a line runs, for rules that deny or ask. All of the commands must be known to run nothing else.
// Any other command makes the whole line doubtful, and a doubtful line may run anything.

import { type Argument, isHarmless, isInert, isKnown, openEnd } from "./harmless.ts";
import { type FullReading, fullReading, type KnownCommand, type Word } from "./known-commands.ts";
import { type CommandParts, watchTargets } from "./targets.ts";
import { isHarmlessVariable } from "./uses/index.ts";

/** The words of each command. A command that runs another command is followed by that command. */
export type Understanding = { readonly commands: readonly (readonly Word[])[] } | { readonly doubt: string };

/** Returns the commands of a line. `workdir` is the workspace path as commands may name it. */
export function understood(line: string, workdir: string): Understanding {
  const reading: FullReading = fullReading(line);
  if ("doubt" in reading) return reading;
  const found: (readonly Word[])[] = [];
  const context: Line = { found, changesWhatRuns: watchTargets(workdir) };
  for (const command of reading.commands) {
    const doubt = doubtAbout(command, context);
    if (doubt !== undefined) return { doubt };
  }
  return { commands: found };
}

interface Line {
  /** The commands of the line, and the commands that they run. */
  readonly found: (readonly Word[])[];
  changesWhatRuns(command: CommandParts): boolean;
}

/**
 * Adds the command, and the commands that it runs, to `line.found`. Returns the reason if the command is not
 * fully understood.
 */
function doubtAbout({ assignments, words, outputs }: KnownCommand, line: Line): string | undefined {
  const assignment = assignments.find(
    ({ name, value }) => !isHarmlessVariable(name) || /[`$]/.test(value.text),
  );
  if (assignment) return `the variable \`${assignment.name}\`, which may change what runs`;
  const [name, ...args] = words;
  if (name?.text === "for" && name.isBare) return loopDoubt(args);
  if (line.changesWhatRuns({ name: name?.text ?? "", args, outputs })) return PLACE;
  return name ? doubtAboutWords(words, line) : undefined;
}

/** The maximum nesting of commands that run other commands. Ordinary lines do not exceed it. */
const MAX_RUNNERS = 4;

function doubtAboutWords(words: readonly Word[], line: Line, depth = 0): string | undefined {
  const [name, ...args] = words;
  if (!name?.isLiteral) return "a command whose name is not written out";
  const program = programIn(name.text);
  if (program === undefined) return `the program \`${name.text}\`, which is not a system program`;
  line.found.push(words);
  const inner = depth < MAX_RUNNERS ? innerCommand(program, args) : undefined;
  if (inner) {
    const [next, ...others] = inner.words;
    if (inner.hasMore && !(next?.isLiteral && isInert(next.text)))
      return `\`${program}\` with unknown arguments`;
    if (next && line.changesWhatRuns({ name: next.text, args: others, outputs: [] })) return PLACE;
    return doubtAboutWords(inner.words, line, depth + 1);
  }
  if (isHarmless(program, args)) {
    const end = openEnd(program, args);
    return end && `\`${program}\`, which ${end}`;
  }
  if (!isKnown(program)) return `\`${program}\`, which may run anything`;
  return `\`${program}\` with arguments that may make it run something else`;
}

const PLACE = "a file that may determine what runs";

/** Returns the program's name, or undefined for a program outside the system's folders. */
const programIn = (text: string): string | undefined =>
  /^(?:\/(?:usr\/)?(?:local\/)?s?bin\/)?([^/]+)$/.exec(text)?.[1];

function loopDoubt([variable, preposition]: readonly Word[]): string | undefined {
  const isKnownLoop =
    variable?.isLiteral &&
    isHarmlessVariable(variable.text) &&
    (preposition === undefined || (preposition.isBare && preposition.text === "in"));
  return isKnownLoop ? undefined : "a `for` that may change what runs";
}

/** Programs that run the command after their own options, with a pattern for these options. */
const RUNNERS: ReadonlyMap<string, RegExp> = new Map([
  ["timeout", /^(-k|-v|--foreground|--preserve-status|--kill-after=\S+|--signal=\w+|\d[\d.]*[smhd]?)$/],
  ["nice", /^(-n|-?-?\d+)$/],
  ["nohup", /^--$/],
  ["command", /^--$/],
  ["stdbuf", /^-[ioe][L0-9]+$/],
  ["xargs", /^(-[0rtnPLI]+\d*|\d+|\{\}|--null|--no-run-if-empty)$/],
]);

interface Inner {
  readonly words: readonly Word[];
  /** True if the command gets more arguments than the line contains. */
  readonly hasMore: boolean;
}

/** If the program runs another command, returns that command. */
function innerCommand(program: string, args: readonly Word[]): Inner | undefined {
  if (program === "find") return executedBy(args);
  if (program === "env") {
    const at = args.findIndex(
      ({ text, isOpaque }) => isOpaque || !isHarmlessVariable(/^(\w+)=/.exec(text)?.[1] ?? "PATH"),
    );
    return at === -1 ? undefined : { words: args.slice(at), hasMore: false };
  }
  const own = RUNNERS.get(program);
  const at = own ? args.findIndex(({ text, isLiteral }) => !isLiteral || !own.test(text)) : -1;
  return at === -1 || args[at]?.text.startsWith("-")
    ? undefined
    : { words: args.slice(at), hasMore: program === "xargs" };
}

/** Returns the command of one `-exec`. The words around it are checked like the arguments of a `find` without `-exec`. */
function executedBy(args: readonly Word[]): Inner | undefined {
  const start = args.findIndex(({ text }) => /^-exec(dir)?$/.test(text));
  const end = args.findIndex(({ text, isLiteral }, at) => at > start && isLiteral && /^[;+]$/.test(text));
  if (start === -1 || end === -1) return undefined;
  const others: Argument[] = [...args.slice(0, start), ...args.slice(end + 1)];
  return isHarmless("find", others) ? { words: args.slice(start + 1, end), hasMore: true } : undefined;
}
