// Regular expressions that come from outside: RE2, so that the time is linear in the text, whatever the
// expression. The process's own engine backtracks and is never given one.

import { RE2JS } from "re2js";

const MAX_LENGTH = 1000;
/** Instructions; an expression of ordinary use has less than a hundred. */
const MAX_SIZE = 2500;
/** Characters times instructions: some tens of milliseconds at the worst. */
const MAX_WORK = 2_000_000;

export interface SafeRegex {
  /** Characters of one text that are searched; what is behind them is not seen. */
  readonly reach: number;
  /** Whether it occurs in `text`. */
  test(text: string): boolean;
  /** Where it first occurs. */
  find(text: string): { start: number; end: number } | undefined;
  /** Whether it is the whole of `text`. */
  matches(text: string): boolean;
}

/** Throws a `SyntaxError` whose message completes "The expression …". */
export function safeRegex(expression: string, flags = 0): SafeRegex {
  if (expression.length > MAX_LENGTH)
    throw new SyntaxError(`has ${expression.length} characters; at most ${MAX_LENGTH} are taken`);
  const regex = compile(expression, flags);
  if (regex.programSize() > MAX_SIZE) throw new SyntaxError("repeats too much; use smaller counts");
  const reach = Math.floor(MAX_WORK / regex.programSize());
  const within = (text: string) => (text.length > reach ? text.slice(0, reach) : text);
  return {
    reach,
    test: (text) => regex.test(within(text)),
    find(text) {
      const matcher = regex.matcher(within(text));
      return matcher.find() ? { start: matcher.start(), end: matcher.end() } : undefined;
    },
    matches: (text) => text.length <= reach && regex.testExact(text),
  };
}

function compile(expression: string, flags: number): RE2JS {
  try {
    return RE2JS.compile(expression, flags);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^error parsing regexp: /, "") : "";
    throw new SyntaxError(`is not valid RE2 (no look-around, no back-references): ${reason}`);
  }
}
