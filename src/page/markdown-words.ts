// Converts Markdown to plain words on one line, for places that do not render it. Independent of the DOM.

import { growingMarkdown, type Node } from "./markdown.ts";

/** The maximum number of characters to read. */
const MOST_READ = 1_000;

/** `**Done:** see [the report](a.md)` is `Done: see the report`. */
export const wordsOf = (markdown: string): string =>
  growingMarkdown()(markdown.slice(0, MOST_READ), true).map(words).join(" ").replace(/\s+/g, " ").trim();

const INLINE: ReadonlySet<string> = new Set(["strong", "em", "del", "code", "a", "span", "maths", "picture"]);

const words = (node: Node): string => {
  if (typeof node === "string") return node;
  const text = node.children.map(words).join("");
  return INLINE.has(node.tag) ? text : `${text} `;
};
