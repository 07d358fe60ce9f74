// Collects the licences of bundled packages, because they require that every copy includes their text.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Copies the licence of each package with a file in the build into `dist`. */
export function copyLicences(files: readonly string[], dist: string): void {
  const folders = new Set(
    files.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []),
  );
  mkdirSync(join(dist, "licences"), { recursive: true });
  for (const folder of folders) {
    const name = folder.replace(/^.*?node_modules\//, "").replaceAll("/", "-");
    writeFileSync(join(dist, `licences/${name}.txt`), licenceIn(folder));
  }
}

/** Includes required notices. Some packages name their licence and author only in package.json. */
function licenceIn(folder: string): string {
  const files = readdirSync(folder).filter((each) => /^(licen[cs]e|notice)(\.(md|txt))?$/i.test(each));
  if (files.length > 0) return files.map((file) => readFileSync(join(folder, file), "utf8")).join("\n");
  const { license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (typeof license !== "string") throw new Error(`${folder} is bundled but does not state its licence.`);
  return `Licence: ${license}\nAuthor: ${typeof author === "string" ? author : JSON.stringify(author)}\n`;
}
