// llms.txt, by which coding agents find pages: every page with its first sentence. See https://llmstxt.org.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DefaultTheme } from "vitepress";
import { DOCS, sidebar } from "./sidebar.ts";

export function writeList(folder: string): void {
  const lines = sidebar().flatMap(({ text = "", items = [] }) => [
    "",
    `## ${text}`,
    "",
    ...items.flatMap(linesOf),
  ]);
  writeFileSync(join(folder, "llms.txt"), `# Skein\n\n> ${firstSentence("README")}\n${lines.join("\n")}\n`);
}

const linesOf = ({ text, link, items = [] }: DefaultTheme.SidebarItem): string[] => [
  ...(link ? [`- [${text}](${link}): ${firstSentence(link)}`.replace(/: $/, "")] : []),
  ...items.flatMap(linesOf),
];

/** The first sentence below a page's title, without links; empty where a table or code comes first. */
function firstSentence(page: string): string {
  const text = readFileSync(join(DOCS, `${page.replace(/\/$/, "/README")}.md`), "utf8");
  const [, paragraph = ""] = /^# .+\n\n(?!```|\||- |!|#)([\s\S]+?)(?:\n\n|$)/m.exec(text) ?? [];
  const plain = paragraph.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, "$1").replaceAll(/\s+/g, " ");
  return /^.+?\.(?= |$)/.exec(plain)?.[0] ?? plain;
}
