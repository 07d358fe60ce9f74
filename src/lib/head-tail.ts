// The beginning and the end of a text of any length, in bounded memory.

import { firstChars, lastChars } from "./cut.ts";

export interface HeadTail {
  push(text: string): void;
  /** Everything while it fits; then head and tail with a line between them that says how much is missing. */
  read(): { text: string; omitted: number };
}

/** Keeps the first and the last `each` characters; holds at most four times that. */
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
