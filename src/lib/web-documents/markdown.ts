// Converts a tree of HTML to Markdown, with absolute links and single-line table cells.

import type { parseHTML } from "linkedom";
import Turndown from "turndown";

export type Element = ReturnType<typeof parseHTML>["document"]["body"];

/** Longer addresses of links and images are left out. */
const MAX_ADDRESS = 2000;

/** `base` is the address for relative links. */
export function markdownOf(root: Element, base: string): string {
  const service = new Turndown({
    headingStyle: "atx",
    codeBlockStyle: "fenced",
    bulletListMarker: "-",
    emDelimiter: "*",
  });
  // Models read text better without backslashes, and no program renders it.
  service.escape = (text) => text;
  service.addRule("link", {
    filter: "a",
    replacement(content, node) {
      const address = addressOf(node, "href", base);
      const text = content.trim();
      return text === "" || address === undefined ? content : `[${text}](${address})`;
    },
  });
  service.addRule("image", {
    filter: "img",
    replacement(_, node) {
      const alt = attributeOf(node, "alt").replace(/\s+/g, " ");
      const address = addressOf(node, "src", base);
      return alt === "" || address === undefined ? alt : `![${alt}](${address})`;
    },
  });
  addTables(service);
  return service
    .turndown(root as never)
    .replace(/\n[ \t]+\n/g, "\n\n")
    .replace(/\n{3,}/g, "\n\n");
}

const attributeOf = (node: unknown, name: string) => (node as Element).getAttribute(name) ?? "";

function addressOf(node: unknown, name: string, base: string): string | undefined {
  const url = URL.parse(attributeOf(node, name), base);
  const isWeb = url?.protocol === "http:" || url?.protocol === "https:" || url?.protocol === "mailto:";
  return isWeb && url.href.length <= MAX_ADDRESS ? url.href : undefined;
}

function addTables(service: Turndown): void {
  service.addRule("cell", {
    filter: ["th", "td"],
    replacement: (content, node) =>
      isGrid(node)
        ? ` ${content
            .trim()
            .replace(/\s*\n\s*/g, " ")
            .replaceAll("|", "\\|")} |`
        : `\n\n${content}\n\n`,
  });
  service.addRule("row", {
    filter: "tr",
    replacement(content, node) {
      if (!isGrid(node)) return content;
      const row = node as unknown as Element;
      const isFirst = tableOf(row)?.querySelector("tr") === row;
      return `\n|${content}${isFirst ? `\n|${" --- |".repeat(row.querySelectorAll("th,td").length)}` : ""}`;
    },
  });
  service.addRule("section", { filter: ["thead", "tbody", "tfoot"], replacement: (content) => content });
  service.addRule("table", { filter: "table", replacement: (content) => `\n\n${content.trim()}\n\n` });
}

const grids = new WeakMap<object, boolean>();

const tableOf = (node: Element) => node.closest("table");

/** Returns false for a table that is used only for layout. */
function isGrid(node: unknown): boolean {
  const table = tableOf(node as Element);
  if (!table) return false;
  const known = grids.get(table) ?? table.querySelector("table,ul,ol,pre,h1,h2,h3,h4,p + p") === null;
  grids.set(table, known);
  return known;
}
