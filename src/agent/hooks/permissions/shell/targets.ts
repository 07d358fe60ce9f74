// Finds the places that the commands of a line write to. A harmless target is a literal name in the workspace that does not
// affect which programs run. Any other target may change the code that other programs execute.

import { runsByItself } from "../self-running.ts";
import { type Argument, runsProject, targetsAmong } from "./harmless.ts";
import { baseName } from "./programs.ts";
import { isCompiler } from "./uses/projects.ts";

/** Places outside the workspace where commands may write. */
const OTHER_PLACES = /^\/(?:tmp(?:\/|$)|dev\/(?:null|zero|u?random|tty|std(?:in|out|err))$)/;

const FOLDERS_OF_PROGRAMS = [
  /^(?:\/|~|\.\.).*\/s?bin(?:\/|$)/,
  /^(?:\/|~\/|(?:\.\.\/)+)(?:usr\/)?(?:local\/)?(?:s?bin|lib(?:exec|x?\d*)|etc)(?:\/|$)/,
];

/**
 * Returns the paths that a word may contain: after an option, `=` or `:`, in braces, or without the extension of an archive.
 */
function pathsIn(word: string): string[] {
  // A downloaded file gets its name from the last part of the URL.
  const text = /^https?:\/\//.test(word) ? (word.split(/[?#]/, 1)[0]?.replace(/^.*\//s, "") ?? "") : word;
  // `--exclude` names files that are not written.
  if (/^--exclude\b/.test(text)) return [];
  const decoded = /%[\da-f]{2}/i.test(text) ? `${text}:${unescaped(text)}` : text;
  const parts = decoded.split(/[=:,{}[\]]/).flatMap((part) => [part, ...behindLetters(part)]);
  return parts.flatMap((part) => [part, part.replace(/\.\w+$/, "")]);
}

/** Decodes percent-encoded characters in a URL. */
const unescaped = (text: string) =>
  text.replace(/%([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

/** `-voHEAD` may mean `-v -o HEAD`. */
const behindLetters = (part: string): string[] =>
  /^-\w/.test(part) ? [2, 3, 4, 5].map((length) => part.slice(length)) : [];

/**
 * True if a word may name a folder of programs or a file that determines which programs run. Hooks, configuration and start-up files are such files.
 */
export const isPlaceThatRuns = (word: string): boolean =>
  pathsIn(word).some((path) => runsByItself(path) || FOLDERS_OF_PROGRAMS.some((folder) => folder.test(path)));

export interface CommandParts {
  /** Empty if the command only redirects. */
  readonly name: string;
  readonly args: readonly Argument[];
  /** The files that the command's output is redirected to. */
  readonly outputs: readonly Argument[];
}

/**
 * Returns a function to call with each command of a line, in order. The function returns true if the command
 * writes to a place that other programs may execute, or if `cd` changes to such a place. `workdir` is the
 * workspace path as commands may name it.
 */
export function watchTargets(workdir: string): (command: CommandParts) => boolean {
  /** True once an earlier `cd` has left, or may have left, the workspace. */
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
    // Compilers and git can read files outside the workspace by their paths.
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

/** True if the program keeps a backup of overwritten files under a name made from its options. */
const keepsBackup = (program: string, args: readonly Argument[]) =>
  KEEPS_BACKUPS.has(program) && args.some(({ text }) => /^(?:-[a-zA-Z]*S|--suf)/.test(text));

/** `cp` and `mv` write only to the last word. The words before it may contain patterns and other folders. */
function sources(program: string, args: readonly Argument[]): (arg: Argument) => boolean {
  const isUsual = COPIES.has(program) && !args.some(({ text }) => /^-\w*t|^--t/.test(text));
  return (arg) => isUsual && arg !== args.at(-1);
}

/** Returns a function that is true for names that git only reads. The function is always false for `git mv`. */
function revisions(program: string, args: readonly Argument[]): (arg: Argument) => boolean {
  const reads = program === "git" && !args.some(({ text }) => text === "mv");
  return ({ text }) => reads && /^HEAD$|[^/]\.git$/.test(text);
}
