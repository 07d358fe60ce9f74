// For rules that deny or ask: the commands that a line runs, when all of them are known to run nothing else. Any
// other command makes the whole line doubtful, and a doubtful line counts as anything.

import {
  type Argument,
  changesWhatRuns,
  isHarmless,
  isInert,
  isKnown,
  runsProject,
  unpacks,
} from "./harmless.ts";
import { type Command, fullReading, type Reading, type Word } from "./known-commands.ts";
import { isHarmlessVariable } from "./uses/index.ts";

/** The words of each command; one that runs another is followed by it. */
export type Understanding = { readonly commands: readonly (readonly Word[])[] } | { readonly doubt: string };

export function understood(line: string): Understanding {
  const reading: Reading = fullReading(line);
  if ("doubt" in reading) return reading;
  const commands: (readonly Word[])[] = [];
  for (const command of reading.commands) {
    const doubt = doubtAbout(command, commands);
    if (doubt !== undefined) return { doubt };
  }
  return { commands };
}

/** Adds the command, and those that it runs, to `found`. */
function doubtAbout(
  { assignments, words, outputs }: Command,
  found: (readonly Word[])[],
): string | undefined {
  const assignment = assignments.find(
    ({ name, value }) => !isHarmlessVariable(name) || /[`$]/.test(value.text),
  );
  if (assignment) return `the variable \`${assignment.name}\`, which may change what runs`;
  const [name, ...args] = words;
  if (name?.text === "for" && name.isBare) return loopDoubt(args);
  if (changesWhatRuns(name?.text ?? "", args, outputs)) return "a file that may say what is run";
  return name ? doubtAboutWords(words, found) : undefined;
}

/** Deeper than any honest line. */
const MAX_RUNNERS = 4;

function doubtAboutWords(words: readonly Word[], found: (readonly Word[])[], depth = 0): string | undefined {
  const [name, ...args] = words;
  if (!name?.isLiteral) return "a command whose name is not written out";
  const program = programIn(name.text);
  if (program === undefined) return `the program \`${name.text}\`, which is not one of the system`;
  found.push(words);
  const inner = depth < MAX_RUNNERS ? innerCommand(program, args) : undefined;
  if (inner) {
    const [next] = inner.words;
    if (inner.hasMore && !(next?.isLiteral && isInert(next.text)))
      return `\`${program}\` with arguments that are not known`;
    if (next && changesWhatRuns(next.text, inner.words.slice(1), []))
      return "a file that may say what is run";
    return doubtAboutWords(inner.words, found, depth + 1);
  }
  if (isHarmless(program, args)) {
    if (unpacks(program, args)) return `\`${program}\`, which writes what an archive holds`;
    return runsProject(program) ? `\`${program}\`, which runs what files say` : undefined;
  }
  if (!isKnown(program)) return `\`${program}\`, which may run anything`;
  return `\`${program}\` with arguments that may make it run something else`;
}

/** Its name; undefined for a program outside the folders of the system. */
const programIn = (text: string): string | undefined =>
  /^(?:\/(?:usr\/)?(?:local\/)?s?bin\/)?([^/]+)$/.exec(text)?.[1];

function loopDoubt([variable, preposition]: readonly Word[]): string | undefined {
  const isKnownLoop =
    variable?.isLiteral &&
    isHarmlessVariable(variable.text) &&
    (preposition === undefined || (preposition.isBare && preposition.text === "in"));
  return isKnownLoop ? undefined : "a `for` that may change what runs";
}

/** For programs that run the command behind their own options: what each of those words may be. */
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
  /** It gets more arguments than there are here. */
  readonly hasMore: boolean;
}

/** The command that it runs, if it is a program that runs one. */
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

/** Of one `-exec`; the words around it are judged as those of a `find` without it. */
function executedBy(args: readonly Word[]): Inner | undefined {
  const start = args.findIndex(({ text }) => /^-exec(dir)?$/.test(text));
  const end = args.findIndex(({ text, isLiteral }, at) => at > start && isLiteral && /^[;+]$/.test(text));
  if (start === -1 || end === -1) return undefined;
  const others: Argument[] = [...args.slice(0, start), ...args.slice(end + 1)];
  return isHarmless("find", others) ? { words: args.slice(start + 1, end), hasMore: true } : undefined;
}
