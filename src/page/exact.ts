// A text as it is, for who must decide on it: what cannot be seen is named, and long runs of blanks, behind which something may
// stand, are counted.

/** A text to be shown as it is, or the name of what cannot be seen. */
export type Piece = string | { readonly mark: string };

/** After a word so many blanks are more than alignment; at the beginning of a line so many are more than indentation. */
const GAP = 8;
const INDENT = 24;
const EMPTY_LINES = 4;

const UNSEEN = new RegExp(
  [
    `(?<=\\S)[ \\t]{${GAP},}|[ \\t]{${INDENT},}`,
    `\\n(?:[ \\t]*\\n){${EMPTY_LINES},}`,
    // Controls, formats, fillers, and spaces that are none of the keyboard's. U+FE0F only makes an emoji of a character.
    "(?![\\n\\t\\ufe0f])[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]",
    "[^\\S \\n\\t]",
  ].join("|"),
  "gu",
);

export function exact(text: string): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(UNSEEN)) {
    if (index > end) pieces.push(text.slice(end, index));
    const mark = { mark: nameOf(found) };
    pieces.push(...(found[0] === "\n" ? ["\n", mark, "\n"] : [mark]));
    end = index + found.length;
  }
  if (end < text.length) pieces.push(text.slice(end));
  return pieces;
}

function nameOf(found: string): string {
  if (found[0] === "\n") return `${found.split("\n").length - 2} empty lines`;
  if (found[0] === " " || found[0] === "\t") return `${found.length} blanks`;
  return `U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
