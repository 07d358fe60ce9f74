// The generous reading of a command line, for rules that deny or ask: every command that could be found in it,
// also inside substitutions, groups and the texts given to other shells. It may see commands where there are
// none, but not the other way round: a line that hides what it runs is read once more with every word as a
// possible command. Time is linear in the text; nothing is thrown.

import { baseName, isInterpreter, OPENERS, programOf, runsAnother, WRAPPERS } from "./programs.ts";
import { scan, type WideWord } from "./scan.ts";

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
