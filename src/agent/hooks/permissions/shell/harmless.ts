// Whether a command is known to run no other program, and to change nothing that others run. Any other use is asked about or
// denied.

import { baseName, family } from "./programs.ts";
import { USES } from "./uses/index.ts";
import { READERS } from "./uses/readers.ts";
import { follows, leafOf, listed, type Use } from "./uses/use.ts";

/** An argument as far as it is known. */
export interface Argument {
  readonly text: string;
  readonly isLiteral: boolean;
  readonly isOpaque: boolean;
  /** It stays one word, or becomes several, that begin as its text does. */
  readonly isWhole: boolean;
}

const knownUse = (name: string): Use | undefined => {
  const program = baseName(name);
  return USES.get(program) ?? USES.get(family(program));
};

/** Whether something is known of the program at all. */
export const isKnown = (name: string): boolean => INERT.has(baseName(name)) || knownUse(name) !== undefined;

/** Whether its first word may say what it does, as in `git push`. Nothing is known of most programs: it may. */
export function takesVerb(name: string): boolean {
  const use = knownUse(name);
  if (!use) return !INERT.has(baseName(name));
  return use.subcommands !== undefined || use.runsProject === true;
}

/** Whether a program never runs another one and never writes a file, with any arguments. */
export const isInert = (name: string): boolean => READERS.has(baseName(name));

/** The arguments that may name what the program writes. */
export function targetsAmong(name: string, args: readonly Argument[]): readonly Argument[] {
  if (name === "" || isInert(name)) return [];
  const use = knownUse(name);
  const leaf = use && leafOf(use, textsOf(args));
  if (!leaf?.use.targets) return args;
  const targets = new Set(leaf.use.targets(leaf.args));
  return args.filter(({ text }) => targets.has(text));
}

/** Whether a program may run what files in its working directory say. */
export const runsProject = (name: string): boolean => knownUse(name)?.runsProject === true;

/** Why a rule that denies takes its harmless use for anything: "`tar`, which writes what an archive holds". */
export function openEnd(name: string, args: readonly Argument[]): string | undefined {
  const use = knownUse(name);
  const leaf = use && leafOf(use, textsOf(args));
  return use?.runsProject ? "runs what files say" : leaf?.use.openEnd?.(leaf.args);
}

/** Whether what it runs may be written in its input. */
export function obeysInput(name: string, args: readonly Argument[]): boolean {
  const use = knownUse(name);
  const leaf = use && leafOf(use, textsOf(args));
  return !isKnown(name) || leaf?.use.obeysInput?.(leaf.args) === true;
}

const textsOf = (args: readonly Argument[]) => args.map(({ text }) => text);

/** Whether the program is known to run no other one with these arguments. */
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

/** None of their options and arguments runs a program or sets a variable. */
const INERT: ReadonlySet<string> = new Set([
  ...READERS,
  ...listed(`cp mv ln link tee dd ptx uniq shuf tree truncate shred xxd chmod chown chgrp sync`),
]);
