// Handles paths as text, without following links, and locates the files of this package.

import { posix } from "node:path";

/**
 * Returns `path` relative to `root` as an absolute path without `.` and `..`. Returns undefined if it leads out of
 * `root`.
 */
export function resolveInside(root: string, path: string): string | undefined {
  const full = posix.resolve(root, path);
  return isInside(root, full) ? full : undefined;
}

/** Expects absolute paths without `.` and `..`. A root counts as inside itself. */
export function isInside(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`);
}

/** The root folder of this package, which is the same from src/ and dist/. */
export const packageRoot = new URL("../../", import.meta.url);

/** Returns the URL of a module of this package by its name in src/ without extension, for example `index`. */
export const moduleUrl = (name: string) =>
  new URL(`../${name}.${import.meta.url.split(".").at(-1)}`, import.meta.url).href;
