// The page of the frame that draws diagrams: one file with its scripts and its style in it, so that it needs no request.

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import type { OutputFile } from "esbuild";

const FOLDER = fileURLToPath(new URL("../src/page/diagram", import.meta.url));

/** It looks for itself on the window, so it is a script of its own, as it is published and with its licences. */
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

/** In strings and patterns of a script, an end of its element or a beginning of a comment must not look like one. */
const inlined = (script: string) => script.replaceAll(/<(?=\/script|!--)/gi, "\\x3C");
