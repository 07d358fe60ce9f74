// Renders streamed Markdown for a terminal: headings, lists, quotes, code, bold and italic. Printed text cannot change,
// so a mark is held back until its meaning is clear. A mark without meaning is printed as is.

import { type Paint, visible } from "./paint.ts";

type Style = "bold" | "cyan" | "dim" | "italic" | "underline";
type Styles = readonly Style[];

export interface Markdown {
  /** Returns the styled text that can be printed now. */
  write(text: string): string;
  /** Returns the text that was held back. Call this at the end of a text. The next text starts on a new line. */
  end(): string;
}

/** The maximum number of characters to hold back. Longer markup is printed as plain text. */
const LONGEST = 1000;
const CODE: Styles = ["cyan"];
const LINE = "───";

/** The beginning of a line that can still become different kinds of block. */
const UNCLEAR =
  /^\s*(?:>|#{1,6}|[-*+](?: +\[(?:[ xX]\]?)?)?|\d{1,9}[.)]?|`{1,2}|`{3,}[^`]*|~{1,2}|~{3,}.*|([-*_])(?: *\1)*)? *$/s;
const UNCLEAR_IN_FENCE = /^ {0,3}(?:`*|~*) *$/;
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$/s;
const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const HEADING = /^ {0,3}(#{1,6}) +(.*)$/s;
const ITEM = /^(\s*)[-*+] +(?:\[([ xX])\] +)?(.*)$/s;
const QUOTE = /^ {0,3}> ?(.*)$/s;

export function markdown(paint: Paint): Markdown {
  const inline = spansWith(paint);
  /** The end of the current line, which is not printed yet. */
  let held = "";
  /** The last printed character. */
  let before = "";
  /** The styles of the current line, once its kind is known. */
  let styles: Styles | undefined;
  /** The text that closes the current code block. */
  let fence: string | undefined;

  /** Removes the mark at the beginning of the line and returns the text to print for it. */
  const beginLine = (isEnd: boolean): string => {
    if (fence !== undefined) {
      styles = CODE;
      if (!isEnd || !closes(held, fence)) return "";
      fence = undefined;
      held = "";
      return paint("dim", LINE);
    }
    styles = [];
    const [, mark, info = ""] = (isEnd && FENCE.exec(held)) || [];
    if (mark !== undefined) {
      fence = mark;
      held = "";
      return paint("dim", `${LINE} ${info.trim()}`.trimEnd());
    }
    if (isEnd && RULE.test(held)) {
      held = "";
      return paint("dim", LINE.repeat(10));
    }
    const [, marks, heading] = HEADING.exec(held) ?? [];
    if (marks !== undefined && heading !== undefined) {
      styles = marks.length <= 2 ? ["bold", "underline"] : ["bold"];
      held = heading;
      return "";
    }
    const [, indent, box, item] = ITEM.exec(held) ?? [];
    if (indent !== undefined && item !== undefined) {
      held = item;
      return visible(`${indent}${box === undefined ? "•" : box === " " ? "☐" : "☑"} `);
    }
    const [, quoted] = QUOTE.exec(held) ?? [];
    if (quoted === undefined) return "";
    held = quoted;
    return paint("dim", "│ ");
  };

  const advance = (isEnd: boolean): string => {
    let shown = "";
    if (styles === undefined) {
      const unclear = fence === undefined ? UNCLEAR : UNCLEAR_IN_FENCE;
      if (!isEnd && held.length < LONGEST && unclear.test(held)) return "";
      shown = beginLine(isEnd);
    }
    if (fence !== undefined) {
      shown += held && paint([...CODE], held);
      held = "";
      return shown;
    }
    const spans = inline({ text: held, styles: styles ?? [], before, isEnd });
    if (spans.taken > 0) before = held[spans.taken - 1] ?? "";
    held = held.slice(spans.taken);
    return shown + spans.shown;
  };

  const endLine = (): string => {
    const shown = advance(true);
    held = "";
    before = "";
    styles = undefined;
    return shown;
  };

  return {
    write(text) {
      const [first = "", ...more] = text.replace(/\r\n?/g, "\n").split("\n");
      held += first;
      let shown = advance(false);
      for (const next of more) {
        shown += `${endLine()}\n`;
        held = next;
        shown += advance(false);
      }
      return shown;
    },
    end() {
      const shown = endLine();
      fence = undefined;
      return shown;
    },
  };
}

const closes = (line: string, fence: string) =>
  line.trim().length >= fence.length && line.trim().replaceAll(fence.charAt(0), "") === "";

interface InlineText {
  readonly text: string;
  readonly styles: Styles;
  /** The character before the text. */
  readonly before: string;
  /** True if the line is complete. */
  readonly isEnd: boolean;
}

interface Spans {
  readonly shown: string;
  /** The number of characters of the text that `shown` covers. */
  readonly taken: number;
}

function spansWith(paint: Paint) {
  const painted = (styles: Styles, text: string) =>
    styles.length === 0 || text === "" ? visible(text) : paint([...styles], text);

  return function inline({ text, styles, before, isEnd }: InlineText): Spans {
    let shown = "";
    let from = 0;
    const until = (end: number) => {
      shown += painted(styles, text.slice(from, end));
      from = end;
    };
    for (let at = 0; ; ) {
      const length = text.slice(at).search(/[\\`*_]/);
      if (length < 0) {
        until(text.length);
        return { shown, taken: text.length };
      }
      at += length;
      const mark = markAt(text, at);
      const end = at + mark.length;
      if (end === text.length && !isEnd && mark.length < LONGEST) {
        until(at);
        return { shown, taken: at };
      }
      if (mark === "\\") {
        if (/[!-/:-@[-`{-~]/.test(text[end] ?? "")) {
          until(at);
          from = end;
          at = end + 1;
        } else at = end;
        continue;
      }
      const previous = text[at - 1] ?? before;
      if (!opens(mark, previous, text[end])) {
        at = end;
        continue;
      }
      const close = closeOf(mark, { text, isEnd }, end);
      if (close === undefined && !isEnd && text.length - at < LONGEST) {
        until(at);
        return { shown, taken: at };
      }
      if (close === undefined) {
        at = end;
        continue;
      }
      until(at);
      const inner = text.slice(end, close);
      const all = [...styles, ...stylesOf(mark)];
      shown +=
        mark[0] === "`"
          ? painted(all, inner.replace(/^ (.*\S.*) $/s, "$1"))
          : inline({ text: inner, styles: all, before: mark, isEnd: true }).shown;
      from = close + mark.length;
      at = from;
    }
  };
}

/** Returns a mark including its repetitions. */
function markAt(text: string, at: number): string {
  const mark = text.charAt(at);
  let end = at + 1;
  while (mark !== "\\" && text[end] === mark) end++;
  return text.slice(at, end);
}

const stylesOf = (mark: string): Styles =>
  mark[0] === "`" ? CODE : mark.length === 1 ? ["italic"] : mark.length === 2 ? ["bold"] : ["bold", "italic"];

/** Returns true for `**bold**`, and false for `2 ** 3`, `2**3` and `snake_case`. */
function opens(mark: string, previous: string, next: string | undefined): boolean {
  if (mark[0] === "`") return true;
  return mark.length <= 3 && !/[a-z0-9]/i.test(previous) && next !== undefined && !/\s/.test(next);
}

/**
 * Returns the position of the closing mark. It must be within `LONGEST` characters and have the same length as the
 * opening mark.
 */
function closeOf(mark: string, line: Pick<InlineText, "text" | "isEnd">, from: number): number | undefined {
  const { text, isEnd } = line;
  const end = Math.min(text.length, from + LONGEST);
  for (let at = from; at < end; ) {
    const found = text[at] === mark[0] || text[at] === "`" ? markAt(text, at) : text.charAt(at);
    const next = at + found.length;
    if (next === text.length && !isEnd) return undefined;
    if (found === mark && (mark[0] === "`" || isClosing(text, at, next))) return at;
    at = next;
    if (found[0] !== "`" || mark[0] === "`") continue;
    // Inside code, other marks have no meaning.
    const code = closeOf(found, line, next);
    if (code === undefined && !isEnd) return undefined;
    at = code === undefined ? next : code + found.length;
  }
  return undefined;
}

const isClosing = (text: string, at: number, next: number) =>
  /\S/.test(text.charAt(at - 1)) && !/[a-z0-9]/i.test(text.charAt(next));
