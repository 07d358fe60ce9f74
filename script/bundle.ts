// Bundles the code that `skein`, and programs that import it, load:  bundle.ts DIST. Finding hundreds of modules takes
// longer than running them. Modules that the program imports on demand stay in separate chunks, and two entries share
// the chunks of common modules. Nothing is minified, so stack traces contain function names and readable lines.

import { readFileSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { build, type Metafile, type Plugin } from "esbuild";
import { copyLicences } from "./licences.ts";

/**
 * Packages that operators install themselves (docs/reference/models.md), because few operators use them and each has
 * many dependencies. All others are bundled.
 */
const OWN_CHOICE = [
  ...["@anthropic-ai/bedrock-sdk", "@anthropic-ai/vertex-sdk", "@azure/identity", "google-auth-library"],
];
/** Variables that CommonJS packages expect. */
const AROUND_COMMONJS = `import { createRequire as $createRequire } from "node:module";
const require = $createRequire(import.meta.url), __filename = import.meta.filename, __dirname = import.meta.dirname;`;

const [dist = "dist"] = process.argv.slice(2);
const { metafile } = await build({
  entryPoints: [
    ...["src/main.ts", "src/index.ts", "src/skein/adapters/index.ts", "src/lib/node-version.ts"],
    // The entry point of a separate thread.
    "src/lib/web-documents/worker.ts",
  ],
  outbase: "src",
  outdir: dist,
  chunkNames: "chunks/[name]-[hash]",
  bundle: true,
  splitting: true,
  metafile: true,
  format: "esm",
  platform: "node",
  // An old Node must be able to parse the code before the version check.
  target: "es2024",
  supported: { "regexp-set-notation": false },
  // If node_modules is a symlink, keeps the path of the symlink for packages.
  preserveSymlinks: true,
  external: [...OWN_CHOICE, "*.node"],
  plugins: [namedImports()],
  banner: { js: AROUND_COMMONJS },
  logLevel: "warning",
});
checkPlaces(metafile);
for (const file of Object.keys(metafile.outputs)) escapeCharacters(file);
importFirst("index.js", "./lib/node-version.js");
importFirst("skein/adapters/index.js", "../../lib/node-version.js");
copyLicences(
  Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs)),
  dist,
);

/**
 * Preserves the named exports of CommonJS packages that the program imports on demand. Otherwise, their chunk would
 * only have `default`.
 */
function namedImports(): Plugin {
  const namespace = "on-demand";
  return {
    name: namespace,
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^[^.]/ }, ({ kind, path, importer }) =>
        kind === "dynamic-import" && !importer.includes("node_modules/") && !isExternal(path)
          ? { path, namespace }
          : undefined,
      );
      onLoad({ filter: /./, namespace }, async ({ path }) => {
        const names = Object.keys(await import(path)).filter((name) => /^[\w$]+$/.test(name));
        return { contents: `export { ${names.join(", ")} } from "${path}";`, resolveDir: process.cwd() };
      });
    },
  };
}

function isExternal(path: string): boolean {
  return isBuiltin(path) || OWN_CHOICE.includes(path);
}

/** Imports one module before all others, because esbuild chooses the order of chunks itself. */
function importFirst(entry: string, module: string): void {
  const path = join(dist, entry);
  writeFileSync(path, `import "${module}";\n${readFileSync(path, "utf8")}`);
}

/**
 * Escapes all characters outside ASCII. A single one, even in a comment, makes V8 store the whole file with two bytes
 * per character. By itself, esbuild escapes them in strings, but not in comments and regular expressions.
 */
function escapeCharacters(file: string): void {
  const text = readFileSync(file, "utf8");
  if (/String\.raw`[^`]*[^`\0-\x7f]/.test(text))
    throw new Error(`${file} has a raw template that an escape would change.`);
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  writeFileSync(file, text.replace(/[^\0-\x7f]/g, escaped));
}

/**
 * Throws if a module uses its own path and is at a different depth than its source, because it would not find its
 * files.
 */
function checkPlaces({ outputs }: Metafile): void {
  for (const [file, { inputs }] of Object.entries(outputs))
    for (const source of Object.keys(inputs))
      if (
        source.startsWith("src/") &&
        depth(source) !== depth(file) &&
        readFileSync(source, "utf8").includes("import.meta.")
      )
        throw new Error(`${source} uses \`import.meta\`, but would be in ${file}, at another depth.`);
}

function depth(path: string): number {
  return path.split("/").length;
}
