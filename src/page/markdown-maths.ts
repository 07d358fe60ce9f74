// Maths in Markdown: `\(…\)`, `\[…\]`, `$$…$$`, and `$…$` if the text cannot be a price.

import type { TokenizerExtension, Tokens } from "marked";

/** `raw` is the source with its delimiters. */
export interface MathsToken extends Tokens.Generic {
  readonly type: "maths";
  readonly source: string;
  readonly isBlock: boolean;
}

/** The maximum length of a formula. A longer formula is shown as source. */
const LONGEST = 4_000;

const BLOCK = [/^ {0,3}\\\[([\s\S]+?)\\\][ \t]*(?:\n|$)/, /^ {0,3}\$\$([\s\S]+?)\$\$[ \t]*(?:\n|$)/];
const INLINE = [
  [/^\\\(([\s\S]+?)\\\)/, false],
  [/^\\\[([\s\S]+?)\\\](?![[(:])/, true],
  [/^\$\$([^$]+?)\$\$/, true],
] as const;
const DOLLARS = /^\$(?![\s$])([^$\n]{1,200}?)(?<![\s\\])\$(?![\w$])/;

/** Returns true for ordinary words between escaped brackets, which are left to Markdown. */
const isProse = (source: string): boolean =>
  !/[\p{L}\d]/u.test(source) || (/^[\p{L}\s.,;:'’!?-]+$/u.test(source) && /\p{L}{3}/u.test(source));

/**
 * Returns true if the text contains no ordinary word, and either has a sign that only maths uses or is a single letter.
 */
const isSurely = (source: string): boolean =>
  (/[\\^_=<>{}]/.test(source) || /^[A-Za-z]'?$|^[A-Za-z]\([A-Za-z]\)$/.test(source)) &&
  !/[A-Za-z]{4,}/.test(source.replace(/\\[A-Za-z]+(\s*\{[^{}]*\})?/g, " "));

const token = (raw: string, source: string, isBlock: boolean): MathsToken => ({
  type: "maths",
  ...{ raw, source: source.trim(), isBlock },
});

/** Returns the text up to the end of its paragraph. A formula must end in the paragraph in which it starts. */
const paragraphOf = (text: string): string => {
  const end = text.indexOf("\n\n");
  return end === -1 ? text.slice(0, LONGEST) : text.slice(0, end);
};

const block: TokenizerExtension = {
  name: "maths-block",
  level: "block",
  start: (text) => {
    const at = paragraphOf(text).search(/\n {0,3}(?:\\\[|\$\$)/);
    return at === -1 ? undefined : at + 1;
  },
  tokenizer(text) {
    if (!/^ {0,3}[\\$]/.test(text)) return undefined;
    const near = text.slice(0, LONGEST);
    for (const form of BLOCK) {
      const [raw, source] = form.exec(near) ?? [];
      if (raw !== undefined && source !== undefined && !isProse(source)) return token(raw, source, true);
    }
    return undefined;
  },
};

const inline: TokenizerExtension = {
  name: "maths-inline",
  level: "inline",
  start: (text) => {
    const at = text.search(/\\[([]|(?<![\w\\$])\$/);
    return at === -1 ? undefined : at;
  },
  tokenizer(text) {
    if (text[0] !== "\\" && text[0] !== "$") return undefined;
    for (const [form, isBlock] of INLINE) {
      const [raw, source] = form.exec(text) ?? [];
      if (raw !== undefined && source !== undefined && !isProse(source)) return token(raw, source, isBlock);
    }
    const [raw, source = ""] = DOLLARS.exec(text) ?? [];
    return raw !== undefined && isSurely(source) ? token(raw, source, false) : undefined;
  },
};

export const MATHS: readonly TokenizerExtension[] = [block, inline];
