// Cuts Markdown into tokens in time linear in the text. `marked` takes the square of a paragraph's length, and of a nesting's
// depth, for some of what a model may be made to write; very deep nesting overflows its stack.

import { Lexer, Marked, type Token, type TokensList } from "marked";
import { FOOTNOTES } from "./markdown-footnotes.ts";
import { MATHS } from "./markdown-maths.ts";

/** Longer runs of words are cut in pieces: what begins in one and ends in another is shown as it is written. */
const MAX_WORDS = 2000;
/** Lists and quotes that lie deeper are shown as they are written. */
const MAX_DEPTH = 30;

/** GitHub's Markdown, with what its specification leaves out. */
const { defaults: DIALECT } = new Marked({ extensions: [...MATHS, ...FOOTNOTES] });

/** `most` is how many characters are searched for what stands within a line. The rest is plain text. */
export function tokensOf(text: string, most = Number.POSITIVE_INFINITY): Token[] {
  const lexer = new Lexer({ ...DIALECT });
  const [block, inline] = [lexer.blockTokens.bind(lexer), lexer.inlineTokens.bind(lexer)];
  let depth = 0;
  let left = most;

  function blockTokens(source: string, tokens?: Token[], isClipped?: boolean): Token[];
  function blockTokens(source: string, tokens?: TokensList, isClipped?: boolean): TokensList;
  function blockTokens(source: string, tokens: Token[] = [], isClipped?: boolean): Token[] {
    if (depth === MAX_DEPTH) {
      tokens.push(plain(source));
      return tokens;
    }
    depth++;
    block(source, tokens, isClipped);
    depth--;
    return tokens;
  }
  lexer.blockTokens = blockTokens;
  let isWithin = false;
  lexer.inlineTokens = (source: string, tokens: Token[] = []) => {
    if (isWithin) return inline(source, tokens);
    isWithin = true;
    for (const piece of piecesOf(source)) {
      if (left < piece.length) tokens.push(plain(piece));
      else inline(piece, tokens);
      left -= piece.length;
    }
    isWithin = false;
    return tokens;
  };
  return lexer.lex(text);
}

const plain = (text: string): Token => ({ type: "text", raw: text, text, escaped: false });

/** Cut behind white space where there is some. */
function piecesOf(source: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  while (source.length - from > MAX_WORDS) {
    const space = source.slice(from, from + MAX_WORDS).search(/\s\S*$/);
    const end = from + (space === -1 ? MAX_WORDS : space + 1);
    pieces.push(source.slice(from, end));
    from = end;
  }
  return [...pieces, source.slice(from)];
}
