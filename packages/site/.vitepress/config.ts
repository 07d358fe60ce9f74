// The site of docs/: the same files that a forge shows. Links that leave docs/ lead to the repository.

import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { defineConfig } from "vitepress";
import { writeList } from "./llms.ts";
import { FOLDERS, sidebar, titleOf, UNLISTED } from "./sidebar.ts";

const { homepage } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));
const repository = String(homepage ?? "https://example.com/skein").replace(/#.*$/, "");

/** Readers look for tasks first, and least for how Skein is made. The function's text goes into the page. */
function weightOf(page: string): number {
  if (/\/(?:start|guides)\//.test(page)) return 1.5;
  return page.includes("/contributing/") ? 0.3 : 1;
}

export default defineConfig({
  title: "Skein",
  description: "A self-hosted, multi-tenant agent server in TypeScript.",
  srcDir: "../../docs",
  srcExclude: UNLISTED,
  // A forge shows README.md of a folder.
  rewrites: (page) => page.replace(/README\.md$/, "index.md"),
  outDir: "./dist",
  cleanUrls: true,
  buildEnd: ({ outDir }) => writeList(outDir),
  themeConfig: {
    search: {
      provider: "local",
      options: { detailedView: true, miniSearch: { searchOptions: { boostDocument: weightOf } } },
    },
    nav: FOLDERS.map((folder) => ({ text: titleOf(folder), link: `/${folder}/` })),
    outline: [2, 3],
    sidebar: sidebar(),
    socialLinks: [{ icon: "github", link: repository }],
  },
  vite: { build: { chunkSizeWarningLimit: 4_000 } },
  markdown: {
    // As a forge does, whose anchors the pages and the `type` of an error use.
    anchor: {
      slugify: (title) =>
        title
          .toLowerCase()
          .replace(/[^\p{L}\p{N}_ -]/gu, "")
          .replaceAll(" ", "-"),
    },
    config(md) {
      const { fence } = md.renderer.rules;
      md.renderer.rules.fence = (tokens, at, ...rest) => {
        const { info, content } = tokens[at] ?? {};
        return info?.trim() === "mermaid"
          ? `<Mermaid code="${encodeURIComponent(content ?? "")}" />`
          : (fence?.(tokens, at, ...rest) ?? "");
      };
      const isOutside = (href: string, page: string) =>
        !/^(?:[a-z]+:|#|\/)/.test(href) && posix.join(posix.dirname(page), href).startsWith("../");
      md.core.ruler.push("leave-docs", ({ tokens, env }) => {
        for (const { children } of tokens)
          for (const token of children ?? []) {
            const href = token.type === "link_open" ? token.attrGet("href") : null;
            if (href === null || !isOutside(href, env.relativePath)) continue;
            const path = posix.join(posix.dirname(env.relativePath), href).slice("../".length);
            token.attrSet("href", `${repository}/blob/main/${path}`);
          }
      });
    },
  },
});
