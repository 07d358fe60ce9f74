// The full reading of a command line, for rules that deny or ask. It returns every command that any POSIX shell would run
// for the line, or the reason why this is unknown. It supports lists, pipes, groups, `if`, `while`, `for`, `$(…)`,
// here-documents, redirections and plain expansions, and rejects everything else. Its result is therefore complete. The time
// is linear in the length of the text. Never throws.

import { MAX_COMMAND_CHARS } from "./simple-command.ts";

export interface Word {
  /** The text without quotes and without the results of expansions. */
  readonly text: string;
  /** True if the word is exactly its text, without expansions or file name patterns. */
  readonly isLiteral: boolean;
  /** True if the word contains an expansion, which may become any words, or a pattern, which becomes file names. */
  readonly isOpaque: boolean;
  /** True if the word begins with its text and stays one word, or becomes paths that begin with this text. */
  readonly isWhole: boolean;
  /** True if no part of the word is quoted, so it may be a reserved word of the shell. */
  readonly isBare: boolean;
}

export interface Assignment {
  readonly name: string;
  readonly value: Word;
}

/** One simple command. */
export interface KnownCommand {
  readonly assignments: readonly Assignment[];
  /** The command's name and arguments. Empty if the command only assigns or redirects. */
  readonly words: readonly Word[];
  /** The files that the command's output is redirected to. */
  readonly outputs: readonly Word[];
}

/** `doubt` completes the sentence "The command is not fully understood: it has …". */
export type FullReading = { readonly commands: readonly KnownCommand[] } | { readonly doubt: string };

/** The maximum nesting of substitutions. */
const MAX_DEPTH = 8;

export function fullReading(line: string): FullReading {
  if (line.length > MAX_COMMAND_CHARS) return { doubt: `more than ${MAX_COMMAND_CHARS} characters` };
  if (!line.isWellFormed() || /[^\P{C}\t\n]|[^\P{Z} ]/u.test(line)) return { doubt: "a control character" };
  const scanner = new Scanner(line);
  try {
    scanner.list(0);
    return { commands: scanner.commands };
  } catch (error) {
    if (!(error instanceof Doubt)) throw error;
    return { doubt: error.what };
  }
}

class Doubt {
  readonly what: string;
  constructor(what: string) {
    this.what = what;
  }
}

const doubt = (what: string): never => {
  throw new Doubt(what);
};

/** Words after which a command begins. */
const OPENERS = new Set(["if", "then", "elif", "else", "while", "until", "do", "{", "!"]);
/** Words after which a list continues. */
const CLOSERS = new Set(["fi", "done", "}"]);
/** Words that begin constructs the scanner does not support. */
const UNKNOWN = new Set(["case", "esac", "select", "function", "coproc", "[[", "in", "time"]);

const BLANK = /(?:[ \t]|\\\n)+/y;
const COMMENT = /#[^\n]*/y;
const SEPARATOR = /&&|\|\||\|&?|;(?![;&])|&(?!>)|\n/y;
const REDIRECTION = /\d*(?:>>|>\||>&|<<<|<<-?|<&|<>|<(?!\()|>(?!\())|&>>?/y;
const BARE = /[\p{L}\p{M}\p{N}_.,/:@%+=^!-]+/uy;
const PATTERN = /[*?[\]]+/y;
const SINGLE = /'[^']*'/y;
const DOUBLE_TEXT = /(?:[^"\\$`]|\\[^\n])+/y;
const ESCAPE = /\\[^\n]/uy;
const PARAMETER = /\$(?:[\p{L}_][\p{L}\p{N}_]*|[@*#?$!\d-])/uy;
/**
 * An expansion with a default value or a removed part in plain characters. The shell executes neither the
 * default value nor the removed part.
 */
const PLAIN_PARAMETER =
  /\$\{#?[A-Za-z_][A-Za-z0-9_]*\}|\$\{[A-Za-z_\d][A-Za-z0-9_]*(?::?-|##?|%%?)[\w.,/*?:@+-]*\}/y;
const SUM = /\$\(\([\d\s+*/%-]*\)\)/y;
const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s;
const DELIMITER = /(?:[ \t]*)(?:'(\w+)'|"(\w+)"|(\w+))(?=[\s;&|)]|$)/y;

class Scanner {
  readonly commands: KnownCommand[] = [];
  readonly #text: string;
  #at = 0;
  /** Here-documents whose text begins after the line. */
  #pending: { readonly end: string; readonly isRaw: boolean; readonly isIndented: boolean }[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  #take(token: RegExp): string | undefined {
    token.lastIndex = this.#at;
    const found = token.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #next = (length = 1) => this.#text.slice(this.#at, this.#at + length);

  /** Scans to the end of the text or, inside a substitution, past its closing parenthesis. */
  list(depth: number): void {
    if (depth > MAX_DEPTH) doubt("substitutions in substitutions");
    let open = 0;
    for (;;) {
      const isEmpty = !this.#command(depth);
      const separator = this.#take(SEPARATOR);
      if (separator === "\n") this.#hereDocuments(depth);
      if (separator !== undefined) continue;
      if (isEmpty && this.#next() === "(" && this.#next(2) !== "((") {
        this.#at++;
        open++;
      } else if (this.#next() === ")" && (open > 0 || depth > 0)) {
        this.#at++;
        if (open === 0) break;
        open--;
      } else if (this.#at === this.#text.length && depth === 0 && open === 0) break;
      else doubt(nameOf(this.#next()));
    }
    if (this.#pending.length > 0) doubt("a here-document without its end");
  }

  /** Scans one command. Returns false when none is left. */
  #command(depth: number): boolean {
    const assignments: Assignment[] = [];
    const words: Word[] = [];
    const outputs: Word[] = [];
    for (;;) {
      this.#take(BLANK);
      if (this.#take(COMMENT) !== undefined) {
        if (depth > 0) doubt("a comment in a substitution");
        continue;
      }
      const isFirst = words.length + assignments.length + outputs.length === 0;
      const redirection = this.#take(REDIRECTION);
      if (redirection !== undefined) {
        // Some shells treat `&>` as the end of the command.
        if (redirection.startsWith("&")) this.#add({ assignments, words: words.splice(0), outputs: [] });
        outputs.push(...this.#redirect(redirection, depth));
        continue;
      }
      const word = this.#word(depth);
      if (!word) break;
      if (this.#pending.length > 0 && word.source.includes("\n")) doubt("a here-document inside quotes");
      if (isFirst && word.isBare && (OPENERS.has(word.text) || CLOSERS.has(word.text))) continue;
      if (isFirst && word.isBare && UNKNOWN.has(word.text)) doubt(`\`${word.text}\``);
      const [, name, start = ""] = words.length === 0 ? (ASSIGNMENT.exec(word.source) ?? []) : [];
      if (name === undefined) words.push(word);
      else {
        const [, , text = ""] = ASSIGNMENT.exec(word.text) ?? [];
        assignments.push({ name, value: { ...word, text, isWhole: word.isWhole && start !== "" } });
      }
    }
    return this.#add({ assignments, words, outputs });
  }

  #add({ assignments, words, outputs }: KnownCommand): boolean {
    const isThere = words.length + assignments.length + outputs.length > 0;
    if (isThere) this.commands.push({ assignments, words, outputs });
    return isThere;
  }

  /** Returns the file that the redirection writes, if any. */
  #redirect(operator: string, depth: number): Word[] {
    if (operator.includes("<<") && !operator.includes("<<<")) {
      this.#announce(operator, depth);
      return [];
    }
    this.#take(BLANK);
    const target = this.#word(depth) ?? doubt("a redirection without a file");
    if (/[<>]&$/.test(operator) && target.isBare && /^(\d+|-)$/.test(target.text)) return [];
    const isRead = /^\d*<(<<)?$/.test(operator);
    // Some shells open a network connection for `/dev/tcp/host/port`.
    if (!operator.includes("<<<") && mayBeSocket(target)) doubt("a redirection that may open a connection");
    return isRead || (target.isLiteral && /^\/dev\/(null|std(out|err)|tty)$/.test(target.text))
      ? []
      : [target];
  }

  #announce(operator: string, depth: number): void {
    DELIMITER.lastIndex = this.#at;
    const found = DELIMITER.exec(this.#text);
    if (!found || depth > 0) throw new Doubt("a here-document");
    this.#at += found[0].length;
    const [, single, double, bare] = found;
    const end = single ?? double ?? bare ?? "";
    this.#pending.push({ end, isRaw: bare === undefined, isIndented: operator.endsWith("-") });
  }

  /** Reads the pending here-documents. Call it directly after the end of a line. */
  #hereDocuments(depth: number): void {
    if (depth > 0 && this.#pending.length > 0) doubt("a here-document");
    for (const { end, isRaw, isIndented } of this.#pending.splice(0)) {
      for (let line: string | undefined; line !== end; ) {
        if (this.#at >= this.#text.length) doubt("a here-document without its end");
        const length = this.#text.indexOf("\n", this.#at);
        const stop = length === -1 ? this.#text.length : length;
        const source = this.#text.slice(this.#at, stop);
        this.#at = Math.min(stop + 1, this.#text.length);
        line = isIndented ? source.replace(/^\t+/, "") : source;
        if (line !== end && !isRaw && /[\\`]|\$[({['"]/.test(line)) doubt("a here-document with expansions");
      }
    }
  }

  #word(depth: number): (Word & { readonly source: string }) | undefined {
    const start = this.#at;
    let text = "";
    let [isLiteral, isOpaque, isWhole, isBare, hasBrace] = [true, false, true, true, false];
    const pattern = (char: string) => {
      if (text === "") isWhole = false;
      isLiteral = isBare = false;
      text += char;
    };
    for (;;) {
      const char = this.#next();
      const bare = this.#take(BARE);
      if (bare !== undefined) text += bare;
      else if (this.#take(PATTERN) !== undefined) pattern("*");
      else if (char === "~") {
        const isStart = this.#at === start || /[=:]/.test(this.#text.charAt(this.#at - 1));
        this.#at++;
        if (isStart) pattern("~");
        else text += "~";
      } else if (char === "'") {
        text += (this.#take(SINGLE) ?? doubt("a quote that is not closed")).slice(1, -1);
        isBare = false;
      } else if (char === '"') {
        const { head, isExpanded, ...quoted } = this.#quoted(depth);
        if (isExpanded && text + head === "") isWhole = false;
        text += quoted.text;
        if (isExpanded) {
          isLiteral = false;
          isOpaque = true;
        }
        isBare = false;
      } else if (char === "\\") {
        if (this.#next(2) === "\\\n") this.#at += 2;
        else text += (this.#take(ESCAPE) ?? doubt("a backslash")).slice(1);
        isBare = false;
      } else if (char === "{" || char === "}" || (char === "#" && this.#at > start)) {
        this.#at++;
        hasBrace ||= char !== "#";
        text += char;
      } else if (char === "$") {
        this.#expansion(depth);
        isOpaque = true;
        isLiteral = isWhole = isBare = false;
      } else break;
    }
    if (this.#at === start) return undefined;
    const source = this.#text.slice(start, this.#at);
    // On their own, these words are not patterns.
    if (/^(\[\[?|\]\]?)$/.test(source)) [text, isLiteral, isWhole, isBare] = [source, true, true, true];
    // Braces that contain these characters expand to several words.
    if (hasBrace && /,|\.\./.test(source)) {
      isOpaque = true;
      isLiteral = isWhole = isBare = false;
    }
    return { text, isLiteral, isOpaque, isWhole, isBare, source };
  }

  #quoted(depth: number): { text: string; head: string; isExpanded: boolean } {
    let text = "";
    let head: string | undefined;
    this.#at++;
    for (;;) {
      const piece = this.#take(DOUBLE_TEXT);
      if (piece !== undefined) text += piece.replace(/\\(["\\$`])/g, "$1");
      else if (this.#next(2) === "\\\n") this.#at += 2;
      else if (this.#next() === "$") {
        if (/^\$["' \t\n.,:;)/%]/.test(this.#next(2))) {
          this.#at++;
          text += "$";
        } else {
          head ??= text;
          this.#expansion(depth);
        }
      } else if (this.#next() === '"') {
        this.#at++;
        return { text, head: head ?? text, isExpanded: head !== undefined };
      } else doubt(this.#next() === "`" ? nameOf("`") : "a quote that is not closed");
    }
  }

  #expansion(depth: number): void {
    if (this.#take(PARAMETER) ?? this.#take(PLAIN_PARAMETER) ?? this.#take(SUM)) return;
    if (this.#next(2) !== "$(" || this.#next(3) === "$((") doubt("an expansion (`$`) that may run commands");
    this.#at += 2;
    this.list(depth + 1);
  }
}

const mayBeSocket = ({ text, isLiteral, isWhole }: Word) =>
  isLiteral ? /^\/dev\/(tcp|udp)\//.test(text) : !isWhole || text.startsWith("/");

const NAMES: ReadonlyMap<string, string> = new Map([
  ["`", "a substitution (`` ` ``)"],
  ["(", "a function, a list or an arithmetic command"],
  [")", "a parenthesis without its other half"],
  ["", "an open end"],
  [";", "`;;`"],
  ["<", "a process substitution"],
  [">", "a process substitution"],
]);

const nameOf = (char: string) => NAMES.get(char) ?? `\`${char}\``;
