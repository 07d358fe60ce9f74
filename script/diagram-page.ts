// Builds the page of the frame that draws diagrams: one file with its scripts and styles, so it needs no requests.

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import type { OutputFile } from "esbuild";

const FOLDER = fileURLToPath(new URL("../src/page/diagram", import.meta.url));

/**
 * Mermaid must be a separate script, because it registers itself on the window. It is included as published, with its
 * licences.
 */
export const MERMAID = fileURLToPath(import.meta.resolve("@mermaid-js/tiny"));

export const diagramOptions = {
  entryPoints: { frame: `${FOLDER}/frame.ts`, style: `${FOLDER}/frame.css` },
  outdir: ".",
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: "es2023",
  logLevel: "warning",
} as const;

export function diagramHtml(built: readonly OutputFile[] = []): string {
  const text = (name: string) => built.find(({ path }) => basename(path) === name)?.text.trim() ?? "";
  const scripts = [readFileSync(MERMAID, "utf8"), text("frame.js")].map(inlined);
  return readFileSync(`${FOLDER}/frame.html`, "utf8")
    .replace("<!-- STYLE -->", () => `<style>${text("style.css")}</style>`)
    .replace("<!-- SCRIPTS -->", () => scripts.map((each) => `<script>${each}</script>`).join("\n"));
}

/** A string or pattern in an inline script must not look like an end tag or the start of a comment. */
const inlined = (script: string) => script.replaceAll(/<(?=\/script|!--)/gi, "\\x3C");
