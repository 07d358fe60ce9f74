// The broad reading of a command line, for rules that deny or ask: every command it could contain, also in substitutions, groups
// and texts for other shells. It may find commands that are not there but misses none: a line that hides what it runs is read
// again with every word as a possible command. Linear in the text; throws nothing.

import { baseName, isInterpreter, OPENERS, programOf, runsAnother, WRAPPERS } from "./programs.ts";

/** The words from a command's name on. */
export interface WideCommand {
  readonly words: readonly WideWord[];
  /** Any of the words may be the name of another command. */
  readonly isLoose: boolean;
  /** Where the name stands of the command that is run in the end; 0 unless others run it. */
  readonly start: number;
  /** Each word as the program that it would name. */
  readonly programs: ReadonlySet<string>;
}

const MAX_DEPTH = 4;

export function wideReading(line: string): WideCommand[] {
  const commands: WideCommand[] = [];
  let texts = [line];
  let isHidden = false;
  for (let depth = 0; depth < MAX_DEPTH && texts.length > 0; depth++) {
    const scans = texts.map(scan);
    const found = scans.flatMap((each) => each.commands);
    isHidden ||= scans.some((each) => each.isHidden) || found.some(hidesSomething);
    commands.push(...found.flatMap(commandOf));
    const words = isHidden ? found.flat().map(({ text }) => text) : [];
    texts = words.filter((text) => /[\s;&|(){}`$<>]/.test(text));
  }
  return isHidden ? [...commands, ...looseReadings(line)] : commands;
}

/** Every word of the line, once with quotes and backslashes taken away, once with them as gaps. */
function looseReadings(line: string): WideCommand[] {
  const joined = line.replace(/\\\n|[^\P{Cc}\s]|['"\\]/gu, "");
  const parted = line.replace(/\\\p{L}?|['"]/gu, " ");
  return [joined, parted].map((text) =>
    wideCommand({ words: text.split(/[\s;&|<>(){}[\],$`=!#]+/).map(plain), isLoose: true, start: 0 }),
  );
}

const wideCommand = (command: Omit<WideCommand, "programs">): WideCommand => ({
  ...command,
  programs: new Set(command.words.map(({ text }) => programOf(text))),
});

const plain = (text: string): WideWord => ({ text, isOpaque: false, isPattern: false });

const ASSIGNMENT = /^[\p{L}_][\p{L}\p{N}_]*(\[[^\]]*\])?\+?=/u;

/** From its name on; nothing when there is none. */
function commandOf(words: readonly WideWord[]): WideCommand[] {
  const first = words.findIndex(({ text }) => !OPENERS.has(text) && !ASSIGNMENT.test(text));
  if (first === -1) return [];
  const own = words.slice(first);
  const start = own.findIndex(({ text }) => !isOfWrapper(text));
  return [wideCommand({ words: own, isLoose: start !== 0, start: Math.max(start, 0) })];
}

/** A wrapper, one of its options, a time or a number that it takes, or a variable that it sets. */
const isOfWrapper = (text: string) =>
  WRAPPERS.has(programOf(text)) || /^(-|\d[\d.]*[smhd]?$)/.test(text) || ASSIGNMENT.test(text);

/** A variable set for a command may name a program that it runs, such as a pager. */
function hidesSomething(words: readonly WideWord[]): boolean {
  const [command] = commandOf(words);
  const [name = "", ...args] = command?.words.map(({ text }) => text) ?? [];
  if (words.slice(0, words.length - args.length).some(({ text }) => ASSIGNMENT.test(text))) return true;
  return (
    isInterpreter(name) || runsAnother(name, args) || (command?.isLoose === true && args.some(isInterpreter))
  );
}

/** The command as texts to search: as it is, without the folder of its program, and without what runs it. */
export function textsOf({ words, start }: WideCommand): string[] {
  const [name = "", ...args] = words.map(({ text }) => text);
  const inner = words.slice(start).map(({ text }) => text);
  return [[name, ...args].join(" "), [baseName(name), ...args].join(" "), inner.join(" ")];
}

// The tokenizer is tolerant: what could start a command starts one, and what it cannot follow sets `isHidden`.

export interface WideWord {
  readonly text: string;
  /** What it becomes is known only when it runs: it holds an expansion. */
  readonly isOpaque: boolean;
  /** A pattern of file names. */
  readonly isPattern: boolean;
}

interface Scan {
  /** The words of each, without redirections. */
  readonly commands: readonly (readonly WideWord[])[];
  /** Something in it is run, or ends elsewhere, in a way that this scan does not follow. */
  readonly isHidden: boolean;
}

interface Scanner {
  /** The word in the making. */
  word: { text: string; isOpaque: boolean; isPattern: boolean; isBare: boolean } | undefined;
  words: WideWord[];
  readonly commands: (readonly WideWord[])[];
  /** The next word is where a redirection goes. */
  isTarget: boolean;
  isHidden: boolean;
}

/** The first that fits, from the left. What ends or continues a word stands before what is part of one. */
const TOKENS: readonly (readonly [RegExp, (scanner: Scanner, token: string) => void])[] = [
  [/\\\n/uy, () => {}],
  [/[ \t]+/uy, endWord],
  [/\$\(|[<>]\(/uy, substitution],
  [/`/uy, hiddenSubstitution],
  [/&>>?/uy, redirectAll],
  [/<<[<-]?/uy, hereDocument],
  [/[<>]&|>\||<>|>>|[<>]/uy, redirect],
  [/[\n;&|()]/uy, endCommand],
  [/[{}](?![^\s;&|()<>])/uy, brace],
  [/[{}]/uy, expansion],
  [/\\.?/suy, escaped],
  [/'[^']*'?/uy, quoted],
  [/"(?:[^"\\]|\\.)*"?/suy, quoted],
  // Before a quote, and in `${…}`, it has rules of its own.
  [/\$(?=['"])|\$\{/uy, hiddenExpansion],
  [/\$[\w@*#?$!-]?/uy, expansion],
  [/#/uy, hash],
  [/[*?[\]]/uy, pattern],
  [/\p{Cc}/uy, () => {}],
  [/[^\s\\'"`$#&|;()<>{}*?[\]\p{Cc}]+/uy, extend],
  [/./suy, extend],
];

export function scan(text: string): Scan {
  const scanner: Scanner = {
    word: undefined,
    words: [],
    commands: [],
    isTarget: false,
    isHidden: false,
  };
  for (let at = 0; at < text.length; ) {
    for (const [token, act] of TOKENS) {
      token.lastIndex = at;
      if (!token.test(text)) continue;
      const end = token.lastIndex;
      act(scanner, text.slice(at, end));
      at = end;
      break;
    }
  }
  endCommand(scanner);
  return scanner;
}

type Marks = Partial<Omit<NonNullable<Scanner["word"]>, "text">>;

function extend(scanner: Scanner, text: string, marks: Marks = {}): void {
  const word = scanner.word ?? { text: "", isOpaque: false, isPattern: false, isBare: true };
  scanner.word = Object.assign(word, marks, { text: word.text + text });
}

function expansion(scanner: Scanner, text: string): void {
  extend(scanner, text, { isOpaque: true });
}

function pattern(scanner: Scanner, text: string): void {
  extend(scanner, text, { isPattern: true });
}

function escaped(scanner: Scanner, pair: string): void {
  extend(scanner, pair.slice(1), { isBare: false });
}

function hiddenExpansion(scanner: Scanner): void {
  expansion(scanner, "");
  scanner.isHidden = true;
}

/** The words after its end are taken for a command of their own. */
function substitution(scanner: Scanner): void {
  expansion(scanner, "");
  endCommand(scanner);
}

function hiddenSubstitution(scanner: Scanner): void {
  substitution(scanner);
  scanner.isHidden = true;
}

function endWord(scanner: Scanner): void {
  const { word } = scanner;
  if (!word) return;
  if (!scanner.isTarget) scanner.words.push(word);
  scanner.isTarget = false;
  scanner.word = undefined;
}

function endCommand(scanner: Scanner): void {
  endWord(scanner);
  if (scanner.words.length > 0) scanner.commands.push(scanner.words);
  scanner.words = [];
  scanner.isTarget = false;
}

/** A number right before it is not a word. */
function redirect(scanner: Scanner): void {
  if (scanner.word?.isBare && /^\d+$/.test(scanner.word.text)) scanner.word = undefined;
  endWord(scanner);
  scanner.isTarget = true;
}

/** To some shells the `&` ends the command. */
function redirectAll(scanner: Scanner): void {
  endCommand(scanner);
  redirect(scanner);
}

/** Where it ends is not looked for: its lines are read like all others. */
function hereDocument(scanner: Scanner): void {
  redirect(scanner);
  scanner.isHidden = true;
}

/** Alone it begins or ends a group. */
function brace(scanner: Scanner, char: string): void {
  if (scanner.word) expansion(scanner, char);
  else endCommand(scanner);
}

function quoted(scanner: Scanner, token: string): void {
  const quote = token.charAt(0);
  const isClosed = token.length > 1 && token.endsWith(quote);
  const inside = token.slice(1, isClosed ? -1 : undefined);
  const isExpanded = quote === '"' && /[$`]/.test(inside);
  if (!isClosed || (quote === '"' && /`|\$[({]/.test(inside))) scanner.isHidden = true;
  const text = quote === '"' ? inside.replace(/\\\n|\\(["\\$`])/g, "$1") : inside;
  extend(scanner, text, { isBare: false, ...(isExpanded ? { isOpaque: true } : {}) });
}

/** A comment is read like the rest, although quotes in it mean nothing. */
function hash(scanner: Scanner, char: string): void {
  if (!scanner.word) scanner.isHidden = true;
  extend(scanner, char);
}
