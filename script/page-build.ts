// Bundles src/page/ for the browser. File names contain a hash of the content, so browsers can cache the files forever.
// index.html refers to them. Each file has a gzip copy.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, watch, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, type OutputFile } from "esbuild";
import { type RolldownOutput, rolldown } from "rolldown";
import { iconOf, markOf } from "../src/page/mark.ts";
import { diagramHtml, diagramOptions, MERMAID } from "./diagram-page.ts";

const SOURCES = fileURLToPath(new URL("../src", import.meta.url));
const PAGE = join(SOURCES, "page");

const styleOptions = {
  entryPoints: { shell: join(PAGE, "shell.css"), style: join(PAGE, "page.css") },
  entryNames: "[name]-[hash]",
  outdir: ".",
  bundle: true,
  minify: true,
  write: false,
  legalComments: "none",
  logLevel: "warning",
} as const;

/** Returns the source files of the page. Throws the errors that the bundlers find. */
export async function buildPage(out: string): Promise<string[]> {
  const [scripts, styles, diagram] = await Promise.all([
    buildScripts(),
    build(styleOptions),
    build(diagramOptions),
  ]);
  save(scripts, styles.outputFiles, diagramHtml(diagram.outputFiles), out);
  return [...scripts.flatMap((chunk) => (chunk.type === "chunk" ? chunk.moduleIds : [])), MERMAID];
}

/**
 * All modules that the first view needs are in one file, although views that are imported on demand share many of them.
 * Each file costs a request, and browsers only send six at a time.
 */
async function buildScripts(): Promise<RolldownOutput["output"]> {
  await using bundle = await rolldown({
    input: { page: join(PAGE, "main.tsx") },
    tsconfig: join(PAGE, "tsconfig.json"),
    transform: { target: "es2023" },
  });
  const { output } = await bundle.generate({
    minify: true,
    comments: false,
    entryFileNames: "[name]-[hash].js",
    chunkFileNames: "[name]-[hash].js",
    codeSplitting: { groups: [{ name: "first-view", test: /\/src\/page\/main\.tsx$/ }] },
  });
  return output;
}

/** Builds, then rebuilds after each change of a source, and writes errors to standard error. Returns a function that stops watching. */
export async function watchPage(out: string): Promise<() => void> {
  let isStale = false;
  let building: Promise<void> = Promise.resolve();
  const rebuild = () => {
    if (isStale) return;
    isStale = true;
    building = building.then(async () => {
      isStale = false;
      await buildPage(out).catch((error: unknown) => console.error(String(error)));
    });
  };
  const watcher = watch(SOURCES, { recursive: true }, rebuild);
  rebuild();
  await building;
  return () => watcher.close();
}

/**
 * Returns the chunks that the entry needs to start. index.html names them, so the browser fetches them at the same time
 * as the entry.
 */
function neededBy(entry: string, chunks: RolldownOutput["output"]): string[] {
  const needed = new Set([entry]);
  for (const file of needed)
    for (const chunk of chunks)
      if (chunk.type === "chunk" && chunk.fileName === file)
        for (const imported of chunk.imports) needed.add(imported);
  return [...needed].slice(1);
}

interface Named {
  readonly name: string;
  readonly content: Uint8Array | string;
}

/** Inserts a hash of the content before the file's extension, in the same way as esbuild. */
function named(file: string, content: Uint8Array | string): Named {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 8).toUpperCase();
  return { name: file.replace(/(?=\.[^.]+$)/, `-${hash}`), content };
}

const picture = (file: string) => named(file, readFileSync(join(PAGE, "icons", file)));

/** Makes the page installable. Its URLs are relative, so they work under any path prefix. */
const manifestOf = (icons: Readonly<Record<"svg" | "small" | "large" | "maskable", Named>>) => ({
  name: "Skein",
  short_name: "Skein",
  start_url: "../",
  scope: "../",
  display: "standalone",
  background_color: "#f7f3ec",
  theme_color: "#f7f3ec",
  icons: [
    { src: icons.svg.name, sizes: "any", type: "image/svg+xml" },
    { src: icons.small.name, sizes: "192x192", type: "image/png" },
    { src: icons.large.name, sizes: "512x512", type: "image/png" },
    { src: icons.maskable.name, sizes: "512x512", type: "image/png", purpose: "maskable" },
  ],
});

/** Writes index.html last, so all files that it names exist. Then removes files that it no longer names. */
function save(
  scripts: RolldownOutput["output"],
  styles: readonly OutputFile[],
  diagram: string,
  out: string,
): void {
  const entry = scripts[0].fileName;
  const style = (name: string) =>
    styles.map(({ path }) => basename(path)).find((each) => each.startsWith(`${name}-`)) ?? "";
  const icons = {
    svg: named("icon.svg", iconOf({ round: 8 })),
    small: picture("icon-192.png"),
    large: picture("icon-512.png"),
    maskable: picture("icon-maskable-512.png"),
    apple: picture("icon-apple-180.png"),
  };
  const frame = named("diagram.html", diagram);
  const manifest = named("manifest.webmanifest", JSON.stringify(manifestOf(icons)));
  const html = readFileSync(join(PAGE, "index.html"), "utf8")
    .replace("PAGE_JS", entry)
    .replace(
      "<!-- CHUNKS -->",
      neededBy(entry, scripts)
        .map((file) => `<link rel="modulepreload" href="page/${file}" fetchpriority="low">`)
        .join("\n"),
    )
    .replace("SHELL_CSS", style("shell"))
    .replace("<!-- MARK -->", markOf())
    .replace("PAGE_CSS", style("style"))
    .replace("ICON_SVG", icons.svg.name)
    .replace("ICON_APPLE", icons.apple.name)
    .replace("MANIFEST", manifest.name)
    .replace("DIAGRAM_HTML", frame.name);
  const files = new Map<string, Uint8Array | string>([
    ...[...Object.values(icons), manifest, frame].map(({ name, content }) => [name, content] as const),
    ...scripts.map((file) => [file.fileName, file.type === "chunk" ? file.code : file.source] as const),
    ...styles.map(({ path, contents }) => [basename(path), contents] as const),
    ["index.html", html],
  ]);
  mkdirSync(out, { recursive: true });
  for (const [file, content] of files) {
    write(join(out, `${file}.gz`), gzipSync(content, { level: 9 }));
    write(join(out, file), content);
  }
  for (const file of readdirSync(out)) if (!files.has(file.replace(/\.gz$/, ""))) rmSync(join(out, file));
}

/** Files are replaced atomically, because a server may read them at any time. */
function write(path: string, content: Uint8Array | string): void {
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
}
