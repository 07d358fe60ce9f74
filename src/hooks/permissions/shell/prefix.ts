// Command prefixes, such as `git status`: whole words, the first one a program.

import type { WideCommand, WideWord } from "./broad-commands.ts";
import { programOf } from "./programs.ts";
import type { PlainCommand } from "./simple-command.ts";

/** Words that mean themselves to every shell. */
export const PREFIX = /^[\p{L}\p{N}_.,/:@%+^][\p{L}\p{N}_.,/:@%+=^-]*( +[\p{L}\p{N}_.,/:@%+=^-]+)*$/u;

export const wordsOf = (prefix: string): string[] => prefix.split(/ +/);

/** Strict: the command begins with exactly these words. */
export function beginsWith(command: PlainCommand, prefix: readonly string[]): boolean {
  return prefix.every((word, index) => command[index]?.isLiteral === true && command[index].text === word);
}

/**
 * Broad: the words occur in this order, with any options between them; options of the prefix may stand anywhere and be
 * combined. Ignores the program's folder, and expansions may become anything.
 */
export function mentions(command: WideCommand, prefix: readonly string[]): boolean {
  if (!isWorthReading(command, prefix)) return false;
  const names = prefix.filter((word) => !word.startsWith("-"));
  const options = prefix.filter((word) => word.startsWith("-"));
  return options.every((option) => hasOption(command.words, option)) && hasNames(command, names);
}

/** False when it cannot mention the prefix; constant time. */
export const isWorthReading = ({ words, start, programs }: WideCommand, [program = ""]: readonly string[]) =>
  programs.has(programOf(program)) || [words[0], words[start]].some((word) => word && isUnknown(word));

function hasOption(words: readonly WideWord[], option: string): boolean {
  if (words.some(({ isOpaque }) => isOpaque)) return true;
  if (!/^-\p{L}+$/u.test(option))
    return words.some(({ text }) => text === option || text.startsWith(`${option}=`));
  const given = words.filter(({ text }) => /^-[^-]/.test(text)).map(({ text }) => text.slice(1));
  const letters = new Set(given.join(""));
  return [...option.slice(1)].every((letter) => letters.has(letter));
}

/** How far the names were found before the current word: how many, and whether an option stood right before it. */
interface Progress {
  readonly found: number;
  readonly afterOption: boolean;
}

function hasNames(command: WideCommand, names: readonly string[]): boolean {
  let progress: Progress[] = [];
  for (const [index, word] of command.words.entries()) {
    const next = new Map<string, Progress>();
    const keep = (each: Progress) => next.set(`${each.found} ${each.afterOption}`, each);
    const isOption = word.text.startsWith("-");
    for (const { found, afterOption } of progress) {
      if (isUnknown(word)) return true;
      if (word.text === names[found]) keep({ found: found + 1, afterOption: false });
      if (isOption || afterOption) keep({ found, afterOption: isOption });
    }
    if (mayName(command, index, names[0] ?? "")) {
      if (isUnknown(word)) return true;
      keep({ found: 1, afterOption: false });
    }
    progress = [...next.values()];
    if (progress.some(({ found }) => found === names.length)) return true;
  }
  return false;
}

/** It may become any words. */
const isUnknown = ({ isOpaque, isPattern }: WideWord) => isOpaque || isPattern;

function mayName({ words, isLoose, start }: WideCommand, index: number, name: string): boolean {
  const word = words[index];
  if (!word) return false;
  if (isUnknown(word) && (index === 0 || index === start)) return true;
  return (index === 0 || isLoose) && programOf(word.text) === programOf(name);
}
