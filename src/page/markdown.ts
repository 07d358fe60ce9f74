// Markdown as a tree of elements, while it grows. `marked` only cuts the text into tokens; no string becomes HTML, so what a
// model writes can neither run nor load anything.

import type { Token, Tokens } from "marked";
import { tokensOf } from "./markdown-tokens.ts";

export type Node = string | Element;
export interface Element {
  readonly tag: Tag;
  readonly children: readonly Node[];
  /** Of `a`: where it leads, an address that may be followed. */
  readonly href?: string;
  /** Of `a`: its host, when the words do not say it. */
  readonly host?: string;
  /** Of `code-block`. */
  readonly language?: string;
  /** Of `ol`. */
  readonly start?: number;
  /** Of `h3`: how large it is. All are of one rank below the headings of the page, since a model leaves out some. */
  readonly level?: number;
  /** Of `th` and `td`. */
  readonly align?: "left" | "center" | "right";
}
export type Tag =
  | ("p" | "h3" | "blockquote" | "hr" | "ul" | "ol" | "li" | "code-block")
  | ("table" | "thead" | "tbody" | "tr" | "th" | "td")
  | ("strong" | "em" | "del" | "code" | "br" | "a" | "span");

/** Longer texts are not cut into tokens: they are shown as they are. */
const LONGEST = 400_000;
/** Characters of a growing text to parse for inline Markdown at each redraw. */
const MOST_AT_A_TIME = 20_000;

const element = (tag: Tag, children: readonly Node[] = [], more: Partial<Element> = {}): Element => ({
  tag,
  children,
  ...more,
});

/**
 * To be called with a text as it grows. Blocks that can change no more are the same objects in the next call, so that a
 * view leaves them as they are. With `isWhole` the text is read once more, for references that came after their use.
 */
export function growingMarkdown(): (text: string, isWhole: boolean) => readonly Element[] {
  let settled: Element[] = [];
  let length = 0;
  return (text, isWhole) => {
    if (text.length > LONGEST) return [element("code-block", [text])];
    try {
      return isWhole ? blocks(tokensOf(text)) : grown(text);
    } catch {
      return [element("code-block", [text])];
    }
  };

  function grown(text: string): readonly Element[] {
    const tokens = tokensOf(text.slice(length), MOST_AT_A_TIME);
    // The last block grows; the one before may still join with it, as a loose list does.
    const stays = tokens.findLastIndex(({ type }, index) => type === "space" && index < tokens.length - 2);
    const done: Token[] = [];
    let size = 0;
    for (const token of tokens.slice(0, Math.max(0, stays))) {
      // The rest is parsed at the next redraw.
      if (size > 0 && size + token.raw.length > MOST_AT_A_TIME) break;
      done.push(token);
      size += token.raw.length;
    }
    settled = [...settled, ...blocks(done)];
    length += size;
    return [...settled, ...blocks(tokens.slice(done.length))];
  }
}

const blocks = (tokens: readonly Token[] = []): Element[] => tokens.flatMap((token) => block(token) ?? []);

function block(token: Token): Element | undefined {
  switch (token.type) {
    case "space":
    case "def":
      return undefined;
    case "heading":
      return element("h3", inline(token.tokens), { level: (token as Tokens.Heading).depth });
    case "paragraph":
      return element("p", inline(token.tokens));
    case "text":
      return element("span", inlineOf(token));
    case "blockquote":
      return element("blockquote", blocks(token.tokens));
    case "hr":
      return element("hr");
    case "list":
      return list(token as Tokens.List);
    case "code": {
      const { text, lang } = token as Tokens.Code;
      return element("code-block", [text], lang ? { language: lang.slice(0, 20) } : {});
    }
    case "table":
      return table(token as Tokens.Table);
    default:
      // HTML too: as text.
      return element("p", [token.raw]);
  }
}

function list({ ordered, start, items }: Tokens.List): Element {
  const entries = items.map(({ task, checked, tokens }) =>
    element("li", [...(task ? [checked ? "☑ " : "☐ "] : []), ...blocks(tokens)]),
  );
  return element(ordered ? "ol" : "ul", entries, ordered && typeof start === "number" ? { start } : {});
}

function table({ header, rows }: Tokens.Table): Element {
  const row = (cells: readonly Tokens.TableCell[], tag: "th" | "td") =>
    element(
      "tr",
      cells.map(({ tokens, align }) => element(tag, inline(tokens), align ? { align } : {})),
    );
  return element("table", [
    element("thead", [row(header, "th")]),
    element(
      "tbody",
      rows.map((cells) => row(cells, "td")),
    ),
  ]);
}

const inline = (tokens: readonly Token[] = []): Node[] => tokens.flatMap(inlineOf);

function inlineOf(token: Token): readonly Node[] {
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      return [element(token.type, inline(token.tokens))];
    case "codespan":
      return [element("code", [(token as Tokens.Codespan).text])];
    case "br":
      return [element("br")];
    case "link":
      return link((token as Tokens.Link).href, inline(token.tokens));
    case "image": {
      const { href, text } = token as Tokens.Image;
      return link(href, [`Image: ${text || "without a name"}`]);
    }
    case "text":
    case "escape":
      return "tokens" in token ? inline(token.tokens) : [(token as Tokens.Text).text];
    default:
      return [token.raw];
  }
}

const FOLLOWED = ["https:", "http:", "mailto:"];
/** A longer query may carry away what was said: it is shown in full. */
const LONG_QUERY = 100;

/** Only what a person may follow becomes a link; it says where it leads when its words do not. */
function link(href: string, children: readonly Node[]): readonly Node[] {
  const url = URL.canParse(href) ? new URL(href) : undefined;
  if (!url || !FOLLOWED.includes(url.protocol))
    return [element("span", [...children, ` (${href.slice(0, 200)})`])];
  const words = textOf(children);
  const isPlain = words === href || words === url.href || `mailto:${words}` === href;
  const host = url.search.length > LONG_QUERY ? url.href : url.host || url.pathname;
  return [element("a", children, { href: url.href, ...(isPlain ? {} : { host }) })];
}

const textOf = (nodes: readonly Node[]): string =>
  nodes.map((node) => (typeof node === "string" ? node : textOf(node.children))).join("");
