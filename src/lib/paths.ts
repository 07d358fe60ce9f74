// Paths, by their text alone: links are not followed.

import { posix } from "node:path";

/** `path`, read from `root`, as an absolute path without `.` and `..`; nothing when it leads out of `root`. */
export function resolveInside(root: string, path: string): string | undefined {
  const full = posix.resolve(root, path);
  return isInside(root, full) ? full : undefined;
}

/** Both absolute and without `.` and `..`. A root is inside of itself. */
export function isInside(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`);
}

// Where this package lies, from src/ and from dist/ alike: for the files that are shipped beside the code.

export const packageRoot = new URL("../../", import.meta.url);
