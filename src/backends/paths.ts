// The paths that agents write, checked by their text. Links are each backend's own matter.

import { AppError } from "../core/errors.ts";
import { firstChars } from "../lib/cut.ts";
import { isInside, resolveInside } from "../lib/inside.ts";

const MAX_PATH_BYTES = 4096;
const MAX_NAME_BYTES = 255;

/**
 * A path that is relative to the workspace, or absolute inside one of its `roots`, as relative to the
 * workspace: without `.` and `..`, empty for the workspace itself. The first root is how the agent knows it.
 * Throws `invalid_request` for what is no path, `backend_refused` for one that leads out.
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
    `${quoted(path)} is outside of the workspace \`${workdir}\`. Use a path inside it.`,
  );
}

/** A path in a message: whole unless it is absurdly long. */
export const quoted = (path: string) =>
  `\`${path.length > 200 ? `${firstChars(path, 200)}…` : path.replaceAll("\0", "\\0")}\``;

function checkText(path: string): void {
  if (path === "") throw new AppError("invalid_request", "The path is empty. Use `.` for the workspace.");
  if (path.includes("\0"))
    throw new AppError("invalid_request", `${quoted(path)} holds a NUL character, which no file name can.`);
  const tooLong =
    Buffer.byteLength(path) > MAX_PATH_BYTES ||
    path.split("/").some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES);
  if (tooLong)
    throw new AppError(
      "invalid_request",
      `The path ${quoted(path)} is too long: ${MAX_PATH_BYTES} bytes, and ${MAX_NAME_BYTES} for each name, are possible.`,
    );
}
