// Parses growing Markdown into a tree of elements. `marked` only splits the text into tokens. No string becomes HTML,
// so a model's text can neither run scripts nor load anything.

import type { Token, Tokens } from "marked";
import { withoutEntities } from "./entities.ts";
import type { MarkToken, NoteToken } from "./markdown-footnotes.ts";
import type { MathsToken } from "./markdown-maths.ts";
import { tokensOf } from "./markdown-tokens.ts";

export type Node = string | Element;
export interface Element {
  readonly tag: Tag;
  readonly children: readonly Node[];
  /** For `a`: the target URL, which was checked and is safe to follow. */
  readonly href?: string;
  /** For `a`: its host, if the link text does not contain it. */
  readonly host?: string;
  /** For `a` and `picture`: the workspace file, as written. */
  readonly path?: string;
  /** For `code-block`. */
  readonly language?: string;
  /** For `code-block`: true if it is complete. */
  readonly isClosed?: boolean;
  /** For `code-block`: true if the text is too long to parse as Markdown. */
  readonly isTooLong?: boolean;
  /** For `checkbox`. */
  readonly isChecked?: boolean;
  /** For `html` and `maths`: true if the element is a separate block. */
  readonly isBlock?: boolean;
  /** For `maths`: the source without its delimiters. The element's child is the text as written. */
  readonly source?: string;
  /** For `footnote-mark` and `footnote`. */
  readonly number?: number;
  /** For `td` and `th`: true for a number, which must not wrap. */
  readonly isNumber?: boolean;
  /** For `ol`. */
  readonly start?: number;
  /**
   * For `h3`: its visual size. All headings have the same rank, below the page's own headings, because models skip
   * ranks.
   */
  readonly level?: number;
  /** For `th` and `td`. */
  readonly align?: "left" | "center" | "right";
}
export type Tag =
  | ("p" | "h3" | "blockquote" | "hr" | "ul" | "ol" | "li" | "code-block")
  | ("table" | "thead" | "tbody" | "tr" | "th" | "td")
  | ("strong" | "em" | "del" | "code" | "br" | "a" | "picture" | "span" | "checkbox" | "maths")
  /** `html` is shown as source. */
  | ("footnote-mark" | "footnotes" | "footnote" | "html");

/** The maximum length of a text to parse. A longer text is shown as source. */
const LONGEST = 400_000;
/** The number of characters of a growing text to parse for inline Markdown at each redraw. */
const MOST_AT_A_TIME = 20_000;

const element = (tag: Tag, children: readonly Node[] = [], more: Partial<Element> = {}): Element => ({
  tag,
  children,
  ...more,
});

/**
 * Returns a function to call with a text each time it has grown. A block that can no longer change is the same object
 * in the next call, so views can skip it. `isWhole` parses the text once more, for references that are defined after
 * their use.
 */
export function growingMarkdown(): (text: string, isWhole: boolean) => readonly Element[] {
  let settled: Element[] = [];
  let length = 0;
  return (text, isWhole) => {
    if (text.length > LONGEST) return [element("code-block", [text], { isTooLong: true })];
    try {
      return isWhole ? whole(text) : grown(text);
    } catch {
      return [element("code-block", [text])];
    }
  };

  function grown(text: string): readonly Element[] {
    const tokens = tokensOf(text.slice(length), MOST_AT_A_TIME);
    // The last block is still growing. The block before it can still join it, for example as a loose list.
    const stays = tokens.findLastIndex(({ type }, index) => type === "space" && index < tokens.length - 2);
    const done: Token[] = [];
    let size = 0;
    for (const token of tokens.slice(0, Math.max(0, stays))) {
      // The next redraw parses the rest.
      if (size > 0 && size + token.raw.length > MOST_AT_A_TIME) break;
      done.push(token);
      size += token.raw.length;
    }
    settled = [...settled, ...blocks(done, NO_NOTES)];
    length += size;
    return [...settled, ...blocks(tokens.slice(done.length), NO_NOTES)];
  }
}

/** Footnotes come last, in the order of their marks. A mark without a note stays unchanged. */
function whole(text: string): Element[] {
  const tokens = tokensOf(text);
  const notes = new Map<string, NoteToken>();
  for (const token of tokens) if (isNote(token) && !notes.has(token.label)) notes.set(token.label, token);
  if (notes.size === 0) return blocks(tokens, NO_NOTES);
  const numbers = new Map<string, number>();
  const numberOf: NumberOf = (label) => {
    if (!notes.has(label)) return undefined;
    numbers.set(label, numbers.get(label) ?? numbers.size + 1);
    return numbers.get(label);
  };
  const shown = blocks(tokens, numberOf);
  // A note can contain marks of other notes, so the map grows during the loop.
  const entries: Element[] = [];
  for (const [label, number] of numbers)
    entries.push(element("footnote", blocks(notes.get(label)?.tokens, numberOf), { number }));
  return entries.length > 0 ? [...shown, element("footnotes", entries)] : shown;
}

const isNote = (token: Token): token is NoteToken => token.type === "footnote";

/** Returns the number of the footnote with that label, if it exists. */
type NumberOf = (label: string) => number | undefined;
const NO_NOTES: NumberOf = () => undefined;

const blocks = (tokens: readonly Token[] = [], notes: NumberOf): Element[] =>
  tokens.flatMap((token) => block(token, notes) ?? []);

function block(token: Token, notes: NumberOf): Element | undefined {
  switch (token.type) {
    case "space":
    case "def":
    case "footnote":
      return undefined;
    case "checkbox":
      return checkbox(token as Tokens.Checkbox);
    case "maths":
      return maths(token as MathsToken);
    case "heading":
      return element("h3", inline(token.tokens, notes), { level: (token as Tokens.Heading).depth });
    case "paragraph":
      return element("p", inline(token.tokens, notes));
    case "text":
      return element("span", inlineOf(token, notes));
    case "blockquote":
      return element("blockquote", blocks(token.tokens, notes));
    case "hr":
      return element("hr");
    case "list":
      return list(token as Tokens.List, notes);
    case "code": {
      const { text, lang, raw } = token as Tokens.Code;
      const language = withoutEntities(lang ?? "")
        .split(/\s/)[0]
        ?.slice(0, MAX_LANGUAGE);
      return element("code-block", [text], {
        isClosed: FENCE_AT_END.test(raw),
        ...(language ? { language } : {}),
      });
    }
    case "table":
      return table(token as Tokens.Table, notes);
    case "html":
      return element("html", [token.raw], { isBlock: true });
    default:
      return element("p", [token.raw]);
  }
}

const MAX_LANGUAGE = 20;
const FENCE_AT_END = /\n {0,3}(?:`{3,}|~{3,})\s*$/;

const checkbox = ({ checked }: Tokens.Checkbox) => element("checkbox", [], { isChecked: checked });

const maths = ({ raw, source, isBlock }: MathsToken) => element("maths", [raw.trim()], { source, isBlock });

function list({ ordered, start, items }: Tokens.List, notes: NumberOf): Element {
  const entries = items.map(({ tokens }) => element("li", blocks(tokens, notes)));
  return element(ordered ? "ol" : "ul", entries, ordered && typeof start === "number" ? { start } : {});
}

function table({ header, rows }: Tokens.Table, notes: NumberOf): Element {
  const cell = (tag: "th" | "td", { tokens, align }: Tokens.TableCell) => {
    const words = inline(tokens, notes);
    return element(tag, words, {
      ...(align && { align }),
      ...(NUMBER.test(textOf(words)) && { isNumber: true }),
    });
  };
  const row = (cells: readonly Tokens.TableCell[], tag: "th" | "td") =>
    element(
      "tr",
      cells.map((each) => cell(tag, each)),
    );
  return element("table", [
    element("thead", [row(header, "th")]),
    ...(rows.length > 0
      ? [
          element(
            "tbody",
            rows.map((cells) => row(cells, "td")),
          ),
        ]
      : []),
  ]);
}

/** A number with its sign, its currency and a short unit. */
const NUMBER = /^\s*[^\w\s]{0,3}\s?\d[\d\s.,:/–-]*(?:[^\w\s]|\s?\p{L}{1,4})?\s*$/u;

const inline = (tokens: readonly Token[] = [], notes: NumberOf): Node[] =>
  tokens.flatMap((token) => inlineOf(token, notes));

function inlineOf(token: Token, notes: NumberOf): readonly Node[] {
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      return [element(token.type, inline(token.tokens, notes))];
    case "codespan":
      return [element("code", [(token as Tokens.Codespan).text])];
    case "br":
      return [element("br")];
    case "link":
      return link(withoutEntities((token as Tokens.Link).href), inline(token.tokens, notes));
    case "image": {
      const { href, text, tokens } = token as Tokens.Image;
      return picture(withoutEntities(href), textOf(tokens ? inline(tokens, notes) : [withoutEntities(text)]));
    }
    case "checkbox":
      return [checkbox(token as Tokens.Checkbox)];
    case "maths":
      return [maths(token as MathsToken)];
    case "footnote-mark": {
      const number = notes((token as MarkToken).label);
      return [number === undefined ? token.raw : element("footnote-mark", [], { number })];
    }
    case "escape":
      return [(token as Tokens.Escape).text];
    case "text":
      return "tokens" in token ? inline(token.tokens, notes) : [withoutEntities((token as Tokens.Text).text)];
    case "html":
      return [element("html", [token.raw])];
    default:
      return [token.raw];
  }
}

const FOLLOWED = ["https:", "http:", "mailto:"];
/**
 * The maximum length of a link's query that the page hides. A longer one could leak parts of the conversation, so the
 * page shows it in full.
 */
const LONG_QUERY = 100;

/**
 * Returns whether the URL is a path in the workspace: it has no scheme and no host, and does not start with `#` or `?`.
 */
const isPath = (href: string): boolean => !/^(?:[a-z][a-z\d+.-]*:|[\\/]{2}|[#?]|$)/i.test(href.trim());

/** Only safe URLs become links. The link shows its host if the link text does not. */
function link(href: string, children: readonly Node[]): readonly Node[] {
  if (isPath(href)) return [element("a", children, { path: href })];
  const url = followed(href);
  if (!url) return [element("span", [...children, ` (${href.slice(0, 200)})`])];
  const words = textOf(children);
  const isPlain = words === href || words === url.href || `mailto:${words}` === href;
  const host = url.search.length > LONG_QUERY ? url.href : url.host || url.pathname;
  return [element("a", children, { href: url.href, ...(isPlain ? {} : { host }) })];
}

/** Shows pictures from the workspace. A picture from elsewhere becomes a link and loads only if the user follows it. */
function picture(href: string, name: string): readonly Node[] {
  if (isPath(href)) return [element("picture", [name], { path: href })];
  const url = followed(href);
  if (!url) return [element("span", [name, ` (${href.slice(0, 200)})`])];
  const host = url.search.length > LONG_QUERY ? url.href : url.host || url.pathname;
  return [element("picture", [name], { href: url.href, host })];
}

const followed = (href: string): URL | undefined => {
  const url = URL.parse(href.replaceAll("\\", "%5C")) ?? undefined;
  return url && FOLLOWED.includes(url.protocol) ? url : undefined;
};

export const textOf = (nodes: readonly Node[]): string =>
  nodes.map((node) => (typeof node === "string" ? node : textOf(node.children))).join("");
