// Converts HTML to Markdown: only the article if a page has one, otherwise the whole page. A page that is too large or
// too deep for this becomes plain text, in one pass over its characters.

import { isProbablyReaderable, Readability } from "@mozilla/readability";
import { Parser, Tokenizer } from "htmlparser2";
import { parseHTML } from "linkedom";
import { type DocumentText, documentText } from "./job.ts";
import { type Element, markdownOf } from "./markdown.ts";

const MAX_ELEMENTS = 50_000;
const MAX_DEPTH = 400;
/** The minimum fraction of the page's text that its article must contain to be shown alone. */
const ARTICLE_PART = 0.25;
const SILENT = "script,style,noscript,template,svg,iframe,object,head,title,[hidden]";

/** `url` is the address of the page, for its relative links. */
export function htmlText(html: string, url: string): DocumentText {
  if (!isModest(html)) return plainText(html);
  const document = pageOf(html);
  const title = document.querySelector("title")?.textContent ?? "";
  const base = URL.parse(document.querySelector("base[href]")?.getAttribute("href") ?? "", url)?.href ?? url;
  return documentText(title, markdownOf(articleOf(html, document) ?? bodyOf(document), base));
}

function pageOf(html: string): Document {
  // The parser does not add a body to a page without one.
  const whole = /<body[\s>]/i.test(html) ? html : `<html><body>${html}</body></html>`;
  return parseHTML(whole).document;
}

type Document = ReturnType<typeof parseHTML>["document"];

function bodyOf(document: Document): Element {
  for (const each of document.querySelectorAll(SILENT)) each.remove();
  return document.body;
}

/** Returns undefined if the page is a list, a form or something similar. */
function articleOf(html: string, document: Document): Element | undefined {
  if (!isProbablyReaderable(document)) return undefined;
  // Readability changes the document that it reads, so it gets a copy.
  const copy = pageOf(html);
  const article = new Readability(copy, {
    serializer: (node) => node as unknown as Element,
    keepClasses: true,
  }).parse();
  if (!article?.content) return undefined;
  const all = bodyOf(document).textContent?.length ?? 0;
  return (article.length ?? 0) >= all * ARTICLE_PART ? article.content : undefined;
}

/** Returns true if the work on the page's tree is bounded. */
function isModest(html: string): boolean {
  let elements = 0;
  let depth = 0;
  let isOver = false;
  const parser: Parser = new Parser({
    onopentag() {
      elements++;
      depth++;
      if (elements <= MAX_ELEMENTS && depth <= MAX_DEPTH) return;
      isOver = true;
      parser.pause();
    },
    onclosetag() {
      depth--;
    },
  });
  parser.write(html);
  if (!isOver) parser.end();
  return !isOver;
}

const SILENT_TAGS = new Set(["script", "style", "noscript", "template", "svg", "title"]);
const LINE_TAGS = new Set(
  "address article aside blockquote br dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table tr ul".split(
    " ",
  ),
);

function plainText(html: string): DocumentText {
  const pieces: string[] = [];
  const title: string[] = [];
  let silent: string | undefined;
  const add = (text: string) => {
    if (silent === undefined) pieces.push(text);
    else if (silent === "title") title.push(text);
  };
  const tag = (start: number, end: number) => html.slice(start, end).toLowerCase();
  const ignore = () => {};
  const tokenizer = new Tokenizer(
    { xmlMode: false, decodeEntities: true },
    {
      ontext: (start, end) => add(html.slice(start, end)),
      ontextentity: (codePoint) => add(String.fromCodePoint(codePoint)),
      onopentagname(start, end) {
        const name = tag(start, end);
        if (SILENT_TAGS.has(name)) silent ??= name;
        else add(LINE_TAGS.has(name) ? "\n" : "");
      },
      onclosetag(start, end) {
        const name = tag(start, end);
        if (silent === name) silent = undefined;
        else add(LINE_TAGS.has(name) ? "\n" : "");
      },
      ...{ onattribdata: ignore, onattribentity: ignore, onattribend: ignore, onattribname: ignore },
      ...{ oncdata: ignore, oncomment: ignore, ondeclaration: ignore, onend: ignore },
      ...{ onopentagend: ignore, onprocessinginstruction: ignore, onselfclosingtag: ignore },
    },
  );
  tokenizer.write(html);
  tokenizer.end();
  const lines = pieces
    .join("")
    .split("\n")
    .map((line) => line.replace(/\s+/g, " ").trim());
  return documentText(title.join(""), lines.filter((line) => line !== "").join("\n"));
}
