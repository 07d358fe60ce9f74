// Truncates, quotes and compares text.

import { timingSafeEqual } from "node:crypto";

/** Returns the first `length` characters, or one fewer to avoid splitting a surrogate pair. */
export function firstChars(text: string, length: number): string {
  return text.slice(0, splitsPair(text, length) ? length - 1 : length);
}

/** Returns the text on one line, without invisible characters except joiners, which form letters and emoji. */
export const visibleLine = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .replaceAll(/[\p{Cf}--[\u{200c}\u{200d}]]/gv, "")
    .trim();

/** Returns the last `length` characters, or one fewer to avoid splitting a surrogate pair. */
export function lastChars(text: string, length: number): string {
  const start = Math.max(0, text.length - length);
  return text.slice(splitsPair(text, start) ? start + 1 : start);
}

function splitsPair(text: string, at: number): boolean {
  if (at <= 0 || at >= text.length) return false;
  const [before, after] = [text.charCodeAt(at - 1), text.charCodeAt(at)];
  return before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff;
}

export interface HeadTail {
  push(text: string): void;
  /**
   * Returns the whole text if it fits. Otherwise, returns the beginning and the end, separated by a line with the
   * number of omitted characters.
   */
  read(): { text: string; omitted: number };
}

/**
 * Keeps the first and last `each` characters of a text of any length. Stores at most four times this number of
 * characters.
 */
export function headTail(each: number): HeadTail {
  let head = "";
  let headIsFull = false;
  let tail: string[] = [];
  let tailSize = 0;
  let total = 0;

  return {
    push(text) {
      total += text.length;
      let rest = text;
      if (!headIsFull) {
        const taken = firstChars(text, each - head.length);
        head += taken;
        rest = text.slice(taken.length);
        headIsFull = rest !== "";
      }
      if (rest === "") return;
      tail.push(rest);
      tailSize += rest.length;
      if (tailSize <= each * 2) return;
      tail = [lastChars(tail.join(""), each)];
      tailSize = tail[0]?.length ?? 0;
    },
    read() {
      if (total <= each * 2) return { text: head + tail.join(""), omitted: 0 };
      const end = lastChars(tail.join(""), each);
      const omitted = total - head.length - end.length;
      return { text: `${head}\n\n... (${omitted} characters left out) ...\n\n${end}`, omitted };
    },
  };
}

/** Wraps untrusted `text` in `<tag>` and escapes it so that it cannot close the tag. */
export function xmlTag(tag: string, text: string): string {
  const inside = text.replaceAll(new RegExp(`<(\\s*/\\s*${tag}\\b)`, "gi"), "<\\$1");
  return `<${tag}>\n${inside}\n</${tag}>`;
}

/** Compares secrets. The duration does not reveal at which position texts of equal length differ. */
export function timingSafeEqualText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
