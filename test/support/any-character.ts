// A unit of arbitrary strings that is quick to make: fast-check's "binary" first lists a million characters, for seconds.

import fc from "fast-check";

const SURROGATES = { first: 0xd800, count: 0x800 };

/** Any character of Unicode, without halves of pairs. */
export const character = fc
  .nat({ max: 0x10_ffff - SURROGATES.count })
  .map((n) => String.fromCodePoint(n < SURROGATES.first ? n : n + SURROGATES.count));
