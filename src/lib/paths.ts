// Paths as text, without following links, and where the files of this package lie.

import { posix } from "node:path";

/** `path` relative to `root`, as an absolute path without `.` and `..`; undefined when it leads out of `root`. */
export function resolveInside(root: string, path: string): string | undefined {
  const full = posix.resolve(root, path);
  return isInside(root, full) ? full : undefined;
}

/** For absolute paths without `.` and `..`. A root is inside itself. */
export function isInside(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`);
}

/** The folder of this package, from src/ and from dist/ alike. */
export const packageRoot = new URL("../../", import.meta.url);

/** The URL of a module of this package, named as in src/ and without its extension: `index`. */
export const moduleUrl = (name: string) =>
  new URL(`../${name}.${import.meta.url.split(".").at(-1)}`, import.meta.url).href;
