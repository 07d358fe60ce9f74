// Where the commands of a line write: in the workspace, under a name that is written out and says nothing about what is run, or
// else they may change what other programs run.

import { runsByItself } from "../self-running.ts";
import { type Argument, runsProject, targetsAmong } from "./harmless.ts";
import { baseName } from "./programs.ts";
import { isCompiler } from "./uses/projects.ts";

/** Where commands may write besides the workspace. */
const OTHER_PLACES = /^\/(?:tmp(?:\/|$)|dev\/(?:null|zero|u?random|tty|std(?:in|out|err))$)/;

const FOLDERS_OF_PROGRAMS = [
  /^(?:\/|~|\.\.).*\/s?bin(?:\/|$)/,
  /^(?:\/|~\/|(?:\.\.\/)+)(?:usr\/)?(?:local\/)?(?:s?bin|lib(?:exec|x?\d*)|etc)(?:\/|$)/,
];

/** The paths that a word may hold: behind an option, `=` or `:`, in braces, or without the ending that an archive has. */
function pathsIn(word: string): string[] {
  // A download is called by the last part of its address.
  const text = /^https?:\/\//.test(word) ? (word.split(/[?#]/, 1)[0]?.replace(/^.*\//s, "") ?? "") : word;
  // Excluded files are not written.
  if (/^--exclude\b/.test(text)) return [];
  const decoded = /%[\da-f]{2}/i.test(text) ? `${text}:${unescaped(text)}` : text;
  const parts = decoded.split(/[=:,{}[\]]/).flatMap((part) => [part, ...behindLetters(part)]);
  return parts.flatMap((part) => [part, part.replace(/\.\w+$/, "")]);
}

/** An address may have any character as its number. */
const unescaped = (text: string) =>
  text.replace(/%([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

/** `-voHEAD` may be `-v -o HEAD`. */
const behindLetters = (part: string): string[] =>
  /^-\w/.test(part) ? [2, 3, 4, 5].map((length) => part.slice(length)) : [];

/** Whether a word may name a folder of programs, or a file that says what programs run: hooks, configuration, start-up files. */
export const isPlaceThatRuns = (word: string): boolean =>
  pathsIn(word).some((path) => runsByItself(path) || FOLDERS_OF_PROGRAMS.some((folder) => folder.test(path)));

export interface Writing {
  /** Empty when the line only redirects. */
  readonly name: string;
  readonly args: readonly Argument[];
  /** The files that it is redirected to write. */
  readonly outputs: readonly Argument[];
}

/**
 * For the commands of one line, in their order: whether a command writes, or goes to, where others may find what to run. `workdir`:
 * the workspace, as commands may name it.
 */
export function watchTargets(workdir: string): (command: Writing) => boolean {
  /** An earlier `cd` has left the workspace, or may have. */
  let isAway = false;
  const isOutside = (path: string) =>
    /^[/~]/.test(path) && path !== workdir && !path.startsWith(`${workdir}/`) && !OTHER_PLACES.test(path);
  const leaves = (path: string) => isOutside(path) || /(?:^|\/)\.\.(?:\/|$)/.test(path);
  const isUnsafeOutput = ({ text, isLiteral }: Argument) =>
    !isLiteral || isPlaceThatRuns(text) || leaves(text) || (isAway && !text.startsWith("/"));

  return ({ name, args, outputs }) => {
    if (outputs.some(isUnsafeOutput)) return true;
    const program = baseName(name);
    if (program === "cd") {
      isAway ||=
        args.length === 0 || args.some(({ text, isLiteral }) => !isLiteral || text === "-" || leaves(text));
      return args.some(({ text }) => isPlaceThatRuns(text));
    }
    if (isAway && runsProject(name)) return true;
    const targets = targetsAmong(name, args);
    if (targets.length === 0) return false;
    if (isAway || targets.some(({ isOpaque }) => isOpaque) || keepsBackup(program, args)) return true;
    const isRevision = revisions(program, args);
    const isSource = sources(program, args);
    // Compilers and git read what lies outside by its path.
    const readsOutside = program === "git" || isCompiler(program);
    return targets.some((arg) => {
      if (isRevision(arg)) return false;
      if (isPlaceThatRuns(arg.text) || (!arg.isLiteral && !isSource(arg))) return true;
      return !readsOutside && pathsIn(arg.text).some(isSource(arg) ? isOutside : leaves);
    });
  };
}

const COPIES: ReadonlySet<string> = new Set(["cp", "mv"]);
const KEEPS_BACKUPS: ReadonlySet<string> = new Set([...COPIES, "ln", "install"]);

/** A copy of what is overwritten gets a name that is put together. */
const keepsBackup = (program: string, args: readonly Argument[]) =>
  KEEPS_BACKUPS.has(program) && args.some(({ text }) => /^(?:-[a-zA-Z]*S|--suf)/.test(text));

/** `cp` and `mv` write to the last word only. Patterns and other folders are allowed for the words before it. */
function sources(program: string, args: readonly Argument[]): (arg: Argument) => boolean {
  const isUsual = COPIES.has(program) && !args.some(({ text }) => /^-\w*t|^--t/.test(text));
  return (arg) => isUsual && arg !== args.at(-1);
}

/** Names of what git reads, unless it moves files. */
function revisions(program: string, args: readonly Argument[]): (arg: Argument) => boolean {
  const reads = program === "git" && !args.some(({ text }) => text === "mv");
  return ({ text }) => reads && /^HEAD$|[^/]\.git$/.test(text);
}
