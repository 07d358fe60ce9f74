// The tokens of a command line as shells cut it, tolerantly: whatever could begin a command begins one, and
// what cannot be followed is said so. Time is linear in the text; nothing is thrown.

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
    ...{ word: undefined, words: [], commands: [] },
    ...{ isTarget: false, isHidden: false },
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
