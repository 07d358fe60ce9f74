// Bundles src/page/ for the browser. File names contain a hash of the content, so browsers can cache the files forever.
// index.html refers to them. Each file has a gzip copy.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { type BuildResult, build, context, type Metafile, type Plugin } from "esbuild";
import { iconOf, markOf } from "../src/page/mark.ts";
import { diagramHtml, diagramOptions, MERMAID } from "./diagram-page.ts";

const PAGE = fileURLToPath(new URL("../src/page", import.meta.url));
const MAIN = join(PAGE, "main.tsx");

/**
 * Keeps the modules that the first view needs together. The bundler groups modules by the entry points that need them, and
 * each view that is imported on demand is an entry point. The first view was spread over 26 files, and browsers only send
 * six requests at a time. With this plugin, every view also imports the first one, which is loaded before it.
 */
const firstView: Plugin = {
  name: "first-view",
  setup: ({ onLoad }) =>
    onLoad({ filter: /[/\\]src[/\\]page[/\\].+\.tsx?$/ }, async ({ path }) => ({
      contents: `${await readFile(path, "utf8")}\nimport ${JSON.stringify(MAIN)};`,
      loader: path.endsWith("x") ? "tsx" : "ts",
    })),
};

const options = {
  entryPoints: {
    page: MAIN,
    shell: join(PAGE, "shell.css"),
    style: join(PAGE, "page.css"),
  },
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  splitting: true,
  outdir: ".",
  bundle: true,
  minify: true,
  metafile: true,
  write: false,
  format: "esm",
  target: "es2023",
  // A part that is imported on demand imports the first view, so each would wait for the other if this view waited for an import.
  supported: { "top-level-await": false },
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
} as const;

type Built = BuildResult<typeof options>;
type BuiltDiagram = BuildResult<typeof diagramOptions>;

/** Returns the source files of the page. Throws the errors that esbuild finds. */
export async function buildPage(out: string): Promise<string[]> {
  const [page, diagram] = await Promise.all([
    build({ ...options, plugins: [firstView] }),
    build(diagramOptions),
  ]);
  save(page, diagram, out);
  return [...Object.values(page.metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs)), MERMAID];
}

/** Rebuilds after each change and writes errors to standard error. Returns a function that stops watching. */
export async function watchPage(out: string): Promise<() => Promise<void>> {
  let page: Built | undefined;
  let diagram: BuiltDiagram | undefined;
  const saving = <Result extends BuildResult>(keep: (result: Result) => void) => ({
    name: "save",
    setup: (building: { onEnd(then: (result: Result) => void): void }) =>
      building.onEnd((result) => {
        if (result.errors.length > 0) return;
        keep(result);
        if (page && diagram) save(page, diagram, out);
      }),
  });
  const building = await Promise.all([
    context({ ...options, plugins: [firstView, saving<Built>((result) => (page = result))] }),
    context({ ...diagramOptions, plugins: [saving<BuiltDiagram>((result) => (diagram = result))] }),
  ]);
  await Promise.all(building.map((each) => each.watch()));
  return async () => void (await Promise.all(building.map((each) => each.dispose())));
}

/**
 * Returns the chunks that the entry needs to start. index.html names them, so the browser fetches them at the same time
 * as the entry.
 */
function neededBy(entry: string, { outputs }: Metafile): string[] {
  const needed = new Set([entry]);
  for (const file of needed)
    for (const { path, kind } of outputs[file]?.imports ?? [])
      if (kind === "import-statement") needed.add(path);
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
function save({ outputFiles = [], metafile }: Built, diagram: BuiltDiagram, out: string): void {
  const names = outputFiles.map(({ path }) => basename(path));
  const name = (start: string, ending: string) =>
    names.find((each) => each.startsWith(start) && each.endsWith(ending)) ?? "";
  const entry = name("page-", ".js");
  const chunks = metafile ? neededBy(entry, metafile) : [];
  const icons = {
    svg: named("icon.svg", iconOf({ round: 8 })),
    small: picture("icon-192.png"),
    large: picture("icon-512.png"),
    maskable: picture("icon-maskable-512.png"),
    apple: picture("icon-apple-180.png"),
  };
  const frame = named("diagram.html", diagramHtml(diagram.outputFiles));
  const manifest = named("manifest.webmanifest", JSON.stringify(manifestOf(icons)));
  const html = readFileSync(join(PAGE, "index.html"), "utf8")
    .replace("PAGE_JS", entry)
    .replace(
      "<!-- CHUNKS -->",
      chunks.map((file) => `<link rel="modulepreload" href="page/${file}" fetchpriority="low">`).join("\n"),
    )
    .replace("SHELL_CSS", name("shell-", ".css"))
    .replace("<!-- MARK -->", markOf())
    .replace("PAGE_CSS", name("style-", ".css"))
    .replace("ICON_SVG", icons.svg.name)
    .replace("ICON_APPLE", icons.apple.name)
    .replace("MANIFEST", manifest.name)
    .replace("DIAGRAM_HTML", frame.name);
  const files = new Map<string, Uint8Array | string>([
    ...[...Object.values(icons), manifest, frame].map(({ name, content }) => [name, content] as const),
    ...outputFiles.map(({ path, contents }) => [basename(path), contents] as const),
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
