// Packages of npm that a few tests use as programs or data, in a folder of their own: Skein does not depend on them.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CACHE = fileURLToPath(new URL("../../node_modules/.cache/packages", import.meta.url));

/** The folder in which `packages` (`name@version`) are installed; the first call installs them. */
export function installedPackages(...packages: string[]): string {
  const dir = join(CACHE, packages.join("+").replaceAll("/", "-"));
  const complete = join(dir, "complete");
  if (existsSync(complete)) return dir;
  mkdirSync(dir, { recursive: true });
  const quiet = ["--no-audit", "--no-fund", "--no-save", "--ignore-scripts"];
  execFileSync("npm", ["install", "--prefix", dir, ...quiet, ...packages], { stdio: "pipe" });
  writeFileSync(complete, "");
  return dir;
}
