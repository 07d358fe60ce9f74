// Paths held inside a root, by their text alone: links are not looked at.

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
