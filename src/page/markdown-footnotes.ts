// Footnotes in Markdown: `[^1]` marks a note, and `[^1]: …` contains its text.

import type { Token, TokenizerExtension, Tokens } from "marked";

export interface NoteToken extends Tokens.Generic {
  readonly type: "footnote";
  readonly label: string;
  readonly tokens: Token[];
}
export interface MarkToken extends Tokens.Generic {
  readonly type: "footnote-mark";
  readonly label: string;
}

/** The lines of a note: the lines that follow directly, and indented lines after an empty line. */
const NOTE =
  /^ {0,3}\[\^([^\]\s]{1,100})\]:[ \t]*([^\n]*(?:\n(?! {0,3}\[\^|[ \t]*\n)[^\n]+|\n[ \t]*\n {2,}\S[^\n]*)*)(?:\n+|$)/;
const MARK = /^\[\^([^\]\s]{1,100})\]/;

const note: TokenizerExtension = {
  name: "footnote",
  level: "block",
  tokenizer(text) {
    if (!/^ {0,3}\[\^/.test(text)) return undefined;
    const [raw, label = "", words = ""] = NOTE.exec(text) ?? [];
    if (raw === undefined) return undefined;
    const tokens = this.lexer.blockTokens(words.replaceAll(/\n {2,4}/g, "\n"), []);
    return { type: "footnote", raw, label, tokens } satisfies NoteToken;
  },
};

const mark: TokenizerExtension = {
  name: "footnote-mark",
  level: "inline",
  start: (text) => {
    const at = text.indexOf("[^");
    return at === -1 ? undefined : at;
  },
  tokenizer(text) {
    const [raw, label = ""] = MARK.exec(text) ?? [];
    return raw === undefined ? undefined : ({ type: "footnote-mark", raw, label } satisfies MarkToken);
  },
};

export const FOOTNOTES: readonly TokenizerExtension[] = [note, mark];
