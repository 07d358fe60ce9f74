// Prepares a text for a user who must decide on it. Names invisible characters and counts long runs of blanks, which
// could hide text that follows them.

/** A text to show unchanged, or a mark that names invisible characters. */
export type Piece = string | { readonly mark: string };

/**
 * Runs of at least this many blanks are counted: `GAP` after a word, `INDENT` at the start of a line. Fewer blanks are
 * normal alignment.
 */
const GAP = 8;
const INDENT = 24;
const EMPTY_LINES = 4;

const UNSEEN = new RegExp(
  [
    `(?<=\\S)[ \\t]{${GAP},}|[ \\t]{${INDENT},}`,
    `\\n(?:[ \\t]*\\n){${EMPTY_LINES},}`,
    // Control, format and filler characters, and spaces that no keyboard can type. U+FE0F is allowed, because it only
    // turns a character into an emoji.
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
