// Splits Markdown into tokens in linear time. `marked` alone needs quadratic time for long paragraphs and deep nesting,
// and very deep nesting overflows its stack.

import { Lexer, Marked, type Token, type TokensList } from "marked";
import { FOOTNOTES } from "./markdown-footnotes.ts";
import { MATHS } from "./markdown-maths.ts";

/** The maximum length of a run of words. Longer runs are split, and markup across a split is shown as source. */
const MAX_WORDS = 2000;
/** The maximum nesting of lists and quotes. Deeper ones are shown as source. */
const MAX_DEPTH = 30;

/** GitHub's dialect, with common additions that its specification lacks. */
const { defaults: DIALECT } = new Marked({ extensions: [...MATHS, ...FOOTNOTES] });

/** `most` is the number of characters to parse for inline Markdown. The rest is plain text. */
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

/** Splits after white space where possible. */
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
