// Runs untrusted regular expressions with RE2, so every search takes time linear in the text. JavaScript's own engine
// backtracks.

import { LRUCache } from "lru-cache";
import { RE2JS } from "re2js";
import { atMost } from "./lru.ts";

export const MAX_LENGTH = 1000;
/** In instructions. Ordinary expressions have fewer than a hundred instructions. */
const MAX_SIZE = 2500;
/**
 * The maximum product of the characters of a text and the instructions of an expression. Matching takes tens of
 * milliseconds in the worst case.
 */
const MAX_WORK = 2_000_000;

export interface SafeRegex {
  /** The number of characters of a text that are searched. */
  readonly reach: number;
  /** In instructions. */
  readonly size: number;
  test(text: string): boolean;
  find(text: string): { start: number; end: number } | undefined;
  /** Returns true if the expression matches the whole text. */
  matches(text: string): boolean;
}

/** Throws a `SyntaxError` whose message completes "The expression …". */
export function safeRegex(expression: string, flags = 0): SafeRegex {
  if (expression.length > MAX_LENGTH) throw tooLong(expression);
  const regex = compile(expression, flags);
  const size = regex.programSize();
  if (size > MAX_SIZE) throw new SyntaxError("repeats too often; use smaller counts");
  const reach = Math.floor(MAX_WORK / size);
  const within = (text: string) => (text.length > reach ? text.slice(0, reach) : text);
  return {
    reach,
    size,
    test: (text) => regex.test(within(text)),
    find(text) {
      const matcher = regex.matcher(within(text));
      return matcher.find() ? { start: matcher.start(), end: matcher.end() } : undefined;
    },
    matches: (text) => text.length <= reach && regex.testExact(text),
  };
}

/** For texts of more than `MAX_LENGTH` characters. */
export const tooLong = (text: string) =>
  new SyntaxError(`has ${text.length} characters; at most ${MAX_LENGTH} are allowed`);

const shared = new LRUCache<string, SafeRegex>(atMost(1000));

/** Returns a cached expression if it was used recently, because compiling takes milliseconds. */
export function sharedRegex(expression: string): SafeRegex {
  const known = shared.get(expression) ?? safeRegex(expression);
  shared.set(expression, known);
  return known;
}

function compile(expression: string, flags: number): RE2JS {
  try {
    return RE2JS.compile(expression, flags);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^error parsing regexp: /, "") : "";
    throw new SyntaxError(`is not valid RE2 (no look-around, no back-references): ${reason}`);
  }
}
