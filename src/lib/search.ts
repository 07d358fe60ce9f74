// Finds a text within a text in time linear in both. JavaScript's own `indexOf`, `includes`, `split` and `replaceAll`
// compare a long needle again at each index, so in repetitive texts their time is the product of both lengths.

/** The maximum needle length for `indexOf`, which compares at most this many characters at each index. */
const SHORT = 16;

/** Returns the first index of `needle` at `from` or later, or -1 if there is none. */
export function indexIn(text: string, needle: string, from = 0): number {
  return needle.length <= SHORT ? text.indexOf(needle, from) : searchFrom(text, needle, from);
}

export const isIn = (text: string, needle: string): boolean => indexIn(text, needle) !== -1;

/**
 * Uses the Knuth-Morris-Pratt algorithm, which reads each character of `text` once, except where the needle may begin.
 */
function searchFrom(text: string, needle: string, from: number): number {
  const head = needle.slice(0, SHORT);
  const shorter = shorterMatches(needle);
  let matched = 0;
  for (let at = from; ; ) {
    if (matched === 0) {
      const start = text.indexOf(head, at);
      if (start === -1) return -1;
      at = start + SHORT;
      matched = SHORT;
    } else if (text.charCodeAt(at) !== needle.charCodeAt(matched)) {
      matched = shorter[matched] ?? 0;
    } else {
      at++;
      matched++;
      if (matched === needle.length) return at - matched;
    }
  }
}

/**
 * For each number of matched characters, returns the longest proper prefix of the needle that those characters end
 * with.
 */
function shorterMatches(needle: string): Uint32Array {
  const shorter = new Uint32Array(needle.length);
  let matched = 0;
  for (let at = 1; at < needle.length - 1; at++) {
    while (matched > 0 && needle.charCodeAt(at) !== needle.charCodeAt(matched))
      matched = shorter[matched] ?? 0;
    if (needle.charCodeAt(at) === needle.charCodeAt(matched)) matched++;
    shorter[at + 1] = matched;
  }
  return shorter;
}
