// A window of lines over a text that comes in pieces.

import { firstChars } from "../../lib/cut.ts";

export interface LineWindow {
  /** False once nothing more is needed. */
  take(piece: string): boolean;
  end(): Lines;
}

export interface Lines {
  /** Whole lines with their ends, unless `isLineCut`. */
  readonly text: string;
  /** From 1; one less than the first asked for when there is no such line. */
  readonly lastLine: number;
  /** Whether the text has lines behind `lastLine`. */
  readonly isMore: boolean;
  /** Whether `lastLine`, the only line in the window, is longer than fits. */
  readonly isLineCut: boolean;
}

/** Lines `first` to `first + count - 1`, as many whole ones as fit into `maxChars`. Holds little more than that. */
export function lineWindow(first: number, count: number, maxChars: number): LineWindow {
  let text = "";
  /** The line that comes next, or goes on. */
  let line = 1;
  let isInLine = false;
  let isMore = false;

  const next = (piece: string, at: number) => {
    const end = piece.indexOf("\n", at) + 1 || piece.length;
    isInLine = piece.charCodeAt(end - 1) !== 0x0a;
    if (!isInLine) line++;
    return end;
  };

  return {
    take(piece) {
      let at = 0;
      while (at < piece.length && line < first) at = next(piece, at);
      while (at < piece.length && text.length <= maxChars) {
        isMore = line >= first + count;
        if (isMore) return false;
        const start = at;
        at = next(piece, at);
        text += piece.slice(start, at);
      }
      return text.length <= maxChars;
    },
    end() {
      const lastLine = isInLine && !isMore ? line : line - 1;
      if (text.length <= maxChars) return { text, lastLine, isMore, isLineCut: false };
      const fitting = text.slice(0, text.lastIndexOf("\n", maxChars - 1) + 1);
      if (fitting === "")
        return { text: firstChars(text, maxChars), lastLine: first, isMore: true, isLineCut: true };
      return {
        text: fitting,
        lastLine: first + fitting.split("\n").length - 2,
        isMore: true,
        isLineCut: false,
      };
    },
  };
}
