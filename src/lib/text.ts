// Cutting, quoting and comparing text.

import { timingSafeEqual } from "node:crypto";

/** The first `length` characters, or one less where that would split a surrogate pair. */
export function firstChars(text: string, length: number): string {
  return text.slice(0, splitsPair(text, length) ? length - 1 : length);
}

/** The last `length` characters, or one less where that would split a surrogate pair. */
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
  /** The whole text while it fits; then head and tail, with a line between them that says how much is missing. */
  read(): { text: string; omitted: number };
}

/** Keeps the first and the last `each` characters of a text of any length; holds at most four times that. */
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

/** Untrusted `text` inside `<tag>`, escaped so that it cannot close the tag. */
export function xmlTag(tag: string, text: string): string {
  const inside = text.replaceAll(new RegExp(`<(\\s*/\\s*${tag}\\b)`, "gi"), "<\\$1");
  return `<${tag}>\n${inside}\n</${tag}>`;
}

/** Compares secrets. The time it takes does not reveal where texts of one length differ. */
export function timingSafeEqualText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
