// Decides whether a command is known to run no other program and to change nothing that other programs execute. All other
// uses are denied or need a person's approval.

import { baseName, family } from "./programs.ts";
import { USES } from "./uses/index.ts";
import { READERS } from "./uses/readers.ts";
import { follows, leafOf, listed, type Use } from "./uses/use.ts";

/** An argument, before the shell expands it. */
export interface Argument {
  readonly text: string;
  readonly isLiteral: boolean;
  readonly isOpaque: boolean;
  /** True if the argument stays one word or becomes several words that all begin with its text. */
  readonly isWhole: boolean;
}

const knownUse = (name: string): Use | undefined => {
  const program = baseName(name);
  return USES.get(program) ?? USES.get(family(program));
};

/** True if the table contains anything about the program. */
export const isKnown = (name: string): boolean => INERT.has(baseName(name)) || knownUse(name) !== undefined;

/**
 * True if the program's first word may be a subcommand, as in `git push`. Also true for programs that are not in the table.
 */
export function takesVerb(name: string): boolean {
  const use = knownUse(name);
  if (!use) return !INERT.has(baseName(name));
  return use.subcommands !== undefined || use.runsProject === true;
}

/** True if the program never runs another program and never writes a file, regardless of its arguments. */
export const isInert = (name: string): boolean => READERS.has(baseName(name));

/** Returns the arguments that may name a file to write. */
export function targetsAmong(name: string, args: readonly Argument[]): readonly Argument[] {
  if (name === "" || isInert(name)) return [];
  const use = knownUse(name);
  const leaf = use && leafOf(use, textsOf(args));
  if (!leaf?.use.targets) return args;
  const targets = new Set(leaf.use.targets(leaf.args));
  return args.filter(({ text }) => targets.has(text));
}

/** True if the program may execute instructions in files of its working directory. */
export const runsProject = (name: string): boolean => knownUse(name)?.runsProject === true;

/**
 * Returns why a deny rule treats the program's harmless use as unknown, such as "writes files under names from an archive".
 */
export function openEnd(name: string, args: readonly Argument[]): string | undefined {
  const use = knownUse(name);
  const leaf = use && leafOf(use, textsOf(args));
  return use?.runsProject ? "runs the contents of files" : leaf?.use.openEnd?.(leaf.args);
}

/** True if the program may execute its input. */
export function obeysInput(name: string, args: readonly Argument[]): boolean {
  const use = knownUse(name);
  const leaf = use && leafOf(use, textsOf(args));
  return !isKnown(name) || leaf?.use.obeysInput?.(leaf.args) === true;
}

const textsOf = (args: readonly Argument[]) => args.map(({ text }) => text);

/** True if the program is known to run no other program with these arguments. */
export function isHarmless(name: string, args: readonly Argument[]): boolean {
  if (INERT.has(baseName(name))) return true;
  const use = knownUse(name);
  if (!use) return false;
  const isOpen = use.check === undefined && use.operand === undefined && !use.subcommands;
  const isClear = ({ text, isLiteral, isWhole }: Argument) =>
    isLiteral || (isOpen && isWhole && /^[^-+]/.test(text));
  if (!args.every(isClear)) return false;
  return follows(use, textsOf(args));
}

/** Programs that have no option or argument that runs a program or sets a variable. */
const INERT: ReadonlySet<string> = new Set([
  ...READERS,
  ...listed(`cp mv ln link tee dd ptx uniq shuf tree truncate shred xxd chmod chown chgrp sync`),
]);
