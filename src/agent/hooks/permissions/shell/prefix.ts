// Command prefixes, such as `git status`, which consist of whole words and begin with a program.

import type { Word } from "./known-commands.ts";
import { programOf } from "./programs.ts";
import type { PlainCommand } from "./simple-command.ts";

/** Words that every shell takes literally. */
export const PREFIX = /^[\p{L}\p{N}_.,/:@%+^][\p{L}\p{N}_.,/:@%+=^-]*( +[\p{L}\p{N}_.,/:@%+=^-]+)*$/u;

export const wordsOf = (prefix: string): string[] => prefix.split(/ +/);

/** Strict: the command begins with exactly these words. */
export function beginsWith(command: PlainCommand, prefix: readonly string[]): boolean {
  return prefix.every((word, index) => command[index]?.isLiteral === true && command[index].text === word);
}

export type MentionedWord = Pick<Word, "text" | "isLiteral" | "isOpaque">;

/**
 * Broad: the command contains the program's name, in any folder, followed by the prefix's words in order,
 * with any options between them. The prefix's options may appear anywhere and in any common spelling, and an
 * expansion may become anything. With `isLoose`, any word may name the program.
 */
export function mentions(
  command: readonly MentionedWord[],
  prefix: readonly string[],
  isLoose = false,
): boolean {
  const names = prefix.filter((word) => !word.startsWith("-"));
  const options = prefix.filter((word) => word.startsWith("-"));
  return options.every((option) => hasOption(command, option)) && hasNames(command, names, isLoose);
}

/** Splits a string into all parts that could be the name of a program. */
export const partsOf = (text: string): MentionedWord[] =>
  text.split(/[^\p{L}\p{N}_./-]+/u).map((part) => ({ text: part, isLiteral: true, isOpaque: false }));

/** True if the word may become an option. Some programs have options that start with `+`. */
const isOpen = ({ text, isLiteral, isOpaque }: MentionedWord) =>
  isOpaque || text.startsWith("+") || (!isLiteral && /^[-*][-*\p{L}]*$/u.test(text));

/** The usual letters for these long options. */
const LETTERS: Readonly<Record<string, string>> = {
  ...{ all: "a", command: "c", delete: "d", eval: "e", exec: "ex", force: "f", global: "g" },
  ...{ "no-verify": "n", output: "o", recursive: "r", yes: "y" },
};

/** True if the words contain the option in any spelling: separate or capital letters, or a shortened or longer name. */
function hasOption(words: readonly MentionedWord[], option: string): boolean {
  if (words.some(isOpen)) return true;
  const names = words.flatMap(({ text }) => /^--([^=]+)/.exec(text)?.[1] ?? []);
  const letters = words.map(({ text }) => (/^-[^-]/.test(text) ? text.slice(1).toLowerCase() : "")).join("");
  const name = /^--([^=]+)/.exec(option)?.[1];
  if (name !== undefined) {
    const short = Object.hasOwn(LETTERS, name) ? (LETTERS[name] ?? "") : "";
    return (
      names.some((each) => isSpelling(each, name)) || [...short].some((letter) => letters.includes(letter))
    );
  }
  return [...option.slice(1).toLowerCase()].every(
    (letter) => letters.includes(letter) || names.some((each) => begins(each, letter)),
  );
}

const isSpelling = (given: string, name: string) => name.startsWith(given) || given.startsWith(`${name}-`);

/** True if the long option may correspond to the letter. */
function begins(given: string, letter: string): boolean {
  const known = Object.keys(LETTERS).filter((name) => LETTERS[name]?.includes(letter));
  return known.length > 0 ? known.some((name) => isSpelling(given, name)) : given.startsWith(letter);
}

/** The number of names found before the current word, and whether the previous word was an option. */
interface Progress {
  readonly found: number;
  readonly afterOption: boolean;
}

function hasNames(words: readonly MentionedWord[], names: readonly string[], isLoose: boolean): boolean {
  let progress: Progress[] = [];
  for (const [index, word] of words.entries()) {
    const next = new Map<string, Progress>();
    const keep = (each: Progress) => next.set(`${each.found} ${each.afterOption}`, each);
    const isOption = word.text.startsWith("-");
    for (const { found, afterOption } of progress) {
      if (!word.isLiteral) return true;
      if (word.text === names[found]) keep({ found: found + 1, afterOption: false });
      if (isOption || afterOption) keep({ found, afterOption: isOption });
    }
    if ((index === 0 || isLoose) && programOf(word.text) === programOf(names[0] ?? ""))
      keep({ found: 1, afterOption: false });
    progress = [...next.values()];
    if (progress.some(({ found }) => found === names.length)) return true;
    if (progress.length === 0 && !isLoose) return false;
  }
  return false;
}
