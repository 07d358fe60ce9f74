// Checks the text of paths that agents write, and builds the messages about them. Messages contain the agent's path,
// never the host's. Each backend follows links itself.

import { AppError, type ErrorCode } from "../agent/core/errors.ts";
import { isInside, resolveInside } from "../lib/paths.ts";
import { firstChars } from "../lib/text.ts";

const MAX_PATH_BYTES = 4096;
const MAX_NAME_BYTES = 255;

/**
 * Returns the path relative to the workspace, without `.` and `..`. The result is empty for the workspace itself.
 * `path` must be relative or begin with one of `roots`. The agent knows the workspace by the first root. Throws
 * `invalid_request` for an invalid path and `backend_refused` for a path outside the workspace.
 */
export function toRelative(path: string, roots: readonly [string, ...string[]]): string {
  checkText(path);
  const root = roots.find((candidate) => isInside(candidate, path)) ?? roots[0];
  const full = resolveInside(root, path);
  if (full === undefined) throw outside(path, roots[0]);
  return full.slice(root.length + 1);
}

export function outside(path: string, workdir: string): AppError {
  return new AppError(
    "backend_refused",
    `${quoted(path)} is outside the workspace \`${workdir}\`. Use a path inside it.`,
  );
}

/** Quotes a path for a message. Truncates very long paths. */
export const quoted = (path: string) =>
  `\`${path.length > 200 ? `${firstChars(path, 200)}…` : path.replaceAll("\0", "\\0")}\``;

function checkText(path: string): void {
  if (path === "") throw new AppError("invalid_request", "The path is empty. Use `.` for the workspace.");
  if (path.includes("\0"))
    throw new AppError("invalid_request", `${quoted(path)} contains a NUL character. Remove it.`);
  const tooLong =
    Buffer.byteLength(path) > MAX_PATH_BYTES ||
    path.split("/").some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES);
  if (tooLong)
    throw new AppError(
      "invalid_request",
      `The path ${quoted(path)} is too long: the maximum is ${MAX_PATH_BYTES} bytes, and ${MAX_NAME_BYTES} for each name.`,
    );
}

/**
 * The failures by errno. The codes that are not errno names are for operations that the system would allow but a
 * backend refuses.
 */
const FAILURES: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  ENOENT: ["not_found", "does not exist"],
  ENOTDIR: ["invalid_request", "has a file where a folder must be"],
  EISDIR: ["invalid_request", "is a folder, not a file"],
  ENAMETOOLONG: ["invalid_request", "is too long"],
  ELOOP: ["backend_refused", "follows too many links"],
  EACCES: ["backend_refused", "cannot be reached: permission denied"],
  EPERM: ["backend_refused", "cannot be changed: not permitted"],
  EROFS: ["backend_refused", "cannot be changed: the disk is read-only"],
  EXDEV: ["backend_refused", "is on another disk"],
  EBUSY: ["backend_refused", "is in use as a mount point"],
  EFBIG: ["backend_failed", "cannot be written: it would exceed the maximum file size"],
  ENOSPC: ["backend_failed", "cannot be written: the disk is full"],
  EDQUOT: ["backend_failed", "cannot be written: the disk quota is used up"],
  OUTSIDE: ["backend_refused", "is a link that leads out of the workspace"],
  DANGLING: ["backend_refused", "is a broken link. Remove it first"],
  NOFILE: ["invalid_request", "is a pipe, a socket or a device, not a file"],
  NOFOLDER: ["invalid_request", "is a file, not a folder"],
  GONE: ["backend_failed", "was replaced while it was being read. Read it again"],
  STAGING: [
    "backend_refused",
    "cannot be written: `.skein` in the workspace is not a folder. Remove it first",
  ],
  NO_WORKSPACE: ["backend_failed", "cannot be reached: the workspace does not exist"],
};

export function failure(what: string, path: string, cause?: unknown): AppError {
  const [code, saying] = FAILURES[what] ?? ["backend_failed", `cannot be used (${what})`];
  return new AppError(code, `${quoted(path)} ${saying}.`, { cause });
}

export function assertRemovable(relative: string): void {
  if (relative === "")
    throw new AppError(
      "backend_refused",
      "The workspace itself cannot be removed. Remove its contents instead.",
    );
}

export const lostWhile = (what: string, cause: Error) =>
  new AppError("backend_failed", `The sandbox was lost while ${what}; nothing was changed. Try again.`, {
    cause,
  });
