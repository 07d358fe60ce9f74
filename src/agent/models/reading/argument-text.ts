// Assembles the arguments of one call from the pieces of a stream.

import { wholeCharacters } from "./whole-characters.ts";

export interface ArgumentText {
  /**
   * `empty`: no text yet, or `{}`. `open`: the text is incomplete. `whole`: a JSON object or list is
   * complete.
   */
  readonly state: "empty" | "open" | "whole";
  /** The arguments, followed by any later text that adds new values. */
  readonly text: string;
  /**
   * Adds a piece. Returns the new text for viewers. Holds back an empty object, because the arguments may
   * follow it.
   */
  take(piece: string): string;
  /** Returns text that is still held back when the reply has ended. */
  rest(): string;
  /** True if `piece` repeats all of the arguments, as some proxies do. */
  repeats(piece: string): boolean;
}

export function argumentText(): ArgumentText {
  let value = "";
  /** Kept with each piece. To examine a long value after each piece would take quadratic time. */
  let isBlank = true;
  let waiting = "";
  let behind = "";
  let end = jsonEnd();
  const whole = wholeCharacters();

  const take = (piece: string): string => {
    if (end.isReached) {
      if (!isEmptyObject(value)) {
        behind += piece;
        return "";
      }
      if (piece.trim() === "") return "";
      [value, isBlank, waiting, end] = ["", true, "", jsonEnd()];
    }
    const at = end.find(piece);
    const own = at === undefined ? piece : piece.slice(0, at);
    value += own;
    isBlank &&= own.trim() === "";
    waiting += own;
    if (at !== undefined && at < piece.length) return show() + take(piece.slice(at));
    return show();
  };

  const show = () => {
    if (isEmptyObject(waiting) || waiting.trim() === "") return "";
    const shown = whole(waiting);
    waiting = "";
    return shown;
  };

  return {
    get state() {
      if (end.isReached) return isEmptyObject(value) ? "empty" : "whole";
      return isBlank ? "empty" : "open";
    },
    get text() {
      const saysMore = !(behind.trim() === "" || isEmptyObject(behind) || behind.trim() === value.trim());
      return saysMore ? value + behind : value;
    },
    take,
    rest: () => waiting,
    repeats: (piece) => piece.trim() === value.trim(),
  };
}

/** The maximum length of a string to examine. Longer strings arrive in many pieces. */
const SHORT = 32;

/** True for an empty object, or the beginning of one. */
const isEmptyObject = (text: string) => text.length <= SHORT && /^\s*\{\s*\}?\s*$/.test(text);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Finds the end of the JSON object or list at the start of a text, piece by piece. Other texts have no end.
 */
function jsonEnd() {
  let state: "before" | "inside" | "in a string" | "escaped" | "reached" | "none" = "before";
  let depth = 0;
  const step = (unit: number) => {
    if (state === "escaped") state = "in a string";
    else if (state === "in a string") {
      if (unit === BACKSLASH) state = "escaped";
      else if (unit === QUOTE) state = "inside";
    } else if (opens(unit)) {
      state = "inside";
      depth++;
    } else if (state === "before") {
      if (!isSpace(unit)) state = "none";
    } else if (unit === QUOTE) state = "in a string";
    else if (closes(unit) && --depth === 0) state = "reached";
  };
  return {
    get isReached() {
      return state === "reached";
    },
    /** Returns the index in `piece` after the end. */
    find(piece: string): number | undefined {
      for (let at = 0; at < piece.length && state !== "none"; at++) {
        step(piece.charCodeAt(at));
        if (state === "reached") return at + 1;
      }
      return undefined;
    },
  };
}

const opens = (unit: number) => unit === 0x7b || unit === 0x5b; // { [
const closes = (unit: number) => unit === 0x7d || unit === 0x5d; // } ]
const isSpace = (unit: number) => unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
