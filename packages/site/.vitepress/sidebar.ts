// The list of pages beside each page: the links of each folder's README.md in their order, grouped by its headings. A page that no
// README.md lists fails the build.

import { globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import type { DefaultTheme } from "vitepress";

export const DOCS = fileURLToPath(new URL("../../../docs/", import.meta.url));
export const FOLDERS = ["start", "guides", "reference", "concepts", "contributing"];
/** Generated reports of public types, which are for those who change them. */
export const UNLISTED = ["reference/api/*.md"];

export function sidebar(): DefaultTheme.SidebarItem[] {
  const groups = FOLDERS.map((folder) => readGroup(folder));
  const listed = new Set(groups.flatMap(linksOf));
  const pages = globSync("*/**/*.md", { cwd: DOCS, exclude: UNLISTED }).filter(
    (page) => posix.basename(page) !== "README.md",
  );
  const missing = pages.filter((page) => !listed.has(`/${page.slice(0, -".md".length)}`));
  if (missing.length > 0) throw new Error(`No README.md of docs lists ${missing.join(", ")}.`);
  return groups;
}

const LINE = /^## (?<group>.+)|^(?:[-*]|\d+\.|\|) *\[(?<text>[^\]]+)\]\((?<path>[^):]+)\.md\)/;

export function titleOf(folder: string): string {
  const [, title = folder] =
    /^# (.+)$/m.exec(readFileSync(posix.join(DOCS, folder, "README.md"), "utf8")) ?? [];
  return title;
}

function readGroup(folder: string): DefaultTheme.SidebarItem {
  const items: DefaultTheme.SidebarItem[] = [];
  const text = readFileSync(posix.join(DOCS, folder, "README.md"), "utf8");
  let into = items;
  for (const line of text.split("\n")) {
    const { group, text, path } = LINE.exec(line)?.groups ?? {};
    if (group !== undefined) {
      into = [];
      items.push({ text: group, items: into, collapsed: true });
    } else if (text !== undefined && path !== undefined)
      into.push({
        text: text.replaceAll("`", ""),
        link: `/${posix.join(folder, path)}`.replace(/README$/, ""),
      });
  }
  return {
    text: titleOf(folder),
    link: `/${folder}/`,
    items: items.filter(({ link, items = [] }) => link || items.length > 0),
  };
}

const linksOf = ({ link, items = [] }: DefaultTheme.SidebarItem): string[] => [
  ...(link ? [link] : []),
  ...items.flatMap(linksOf),
];
