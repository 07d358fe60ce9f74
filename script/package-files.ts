// Selects the files of a build to publish: the files that exports reach.
//   prune DIST   removes the files that no export of `skein` reaches, except index.js and skein/adapters/index.js from
//                script/bundle.ts
//   client       copies the files that the exports of packages/client reach

import { cpSync, globSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";

type Exports = Readonly<Record<string, string | Readonly<Record<string, string>>>>;

const BUNDLES = ["index.js", join("skein", "adapters", "index.js")];

function prune(dist: string): void {
  const kept = new Set(
    reached(entries("package.json", dist).filter((file) => !BUNDLES.includes(relative(dist, file)))),
  );
  for (const file of globSync("**/*.{d.ts,js}", { cwd: dist }).map((name) => join(dist, name)))
    if (!kept.has(file)) rmSync(file);
}

function copyClient(): void {
  const target = "packages/client/dist";
  rmSync(target, { recursive: true, force: true });
  for (const file of reached(entries("packages/client/package.json", "dist")))
    cpSync(file, join(target, relative("dist", file)));
  cpSync("LICENSE", "packages/client/LICENSE");
}

/** Returns the files in `dist` that a package exports. */
function entries(manifest: string, dist: string): string[] {
  const { exports }: { exports: Exports } = JSON.parse(readFileSync(manifest, "utf8"));
  return Object.values(exports)
    .flatMap((target) => (typeof target === "string" ? [target] : Object.values(target)))
    .filter((target) => target.startsWith("./dist/"))
    .map((target) => join(dist, target.slice("./dist/".length)));
}

const IMPORT = /(?:\bfrom\s+|\bimport\s*\(?\s*)"(\.[^"]+)"/g;

/** Returns these files and their direct and indirect imports. Declarations refer to other files by their source. */
function reached(files: readonly string[]): string[] {
  const all = new Set(files);
  for (const file of all) {
    for (const [, path = ""] of readFileSync(file, "utf8").matchAll(IMPORT)) {
      const target = normalize(join(dirname(file), path));
      if (/\.[jt]sx?$/.test(target)) all.add(file.endsWith(".d.ts") ? declarationOf(target) : target);
    }
  }
  return [...all];
}

const declarationOf = (file: string) => file.replace(/(?:\.d)?\.[jt]sx?$/, ".d.ts");

const [command, dist = "dist"] = process.argv.slice(2);
if (command === "prune") prune(dist);
else if (command === "client") copyClient();
else throw new Error("Usage: package-files.ts prune DIST | client");
