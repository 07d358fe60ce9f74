// What the operating system says, in the words of the port: about the agent's path, never the host's.

import { AppError, type ErrorCode } from "../../core/errors.ts";
import { quoted } from "../paths.ts";

const SAYINGS: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  ENOENT: ["not_found", "does not exist"],
  ENOTDIR: ["invalid_request", "leads through a file, as if it were a folder"],
  EISDIR: ["invalid_request", "is a folder, not a file"],
  ENAMETOOLONG: ["invalid_request", "is too long"],
  ELOOP: ["backend_refused", "leads through too many links"],
  EACCES: ["backend_refused", "cannot be reached: permission denied"],
  EPERM: ["backend_refused", "cannot be changed: not permitted"],
  EROFS: ["backend_refused", "cannot be changed: the disk is read-only"],
  EXDEV: ["backend_refused", "is on another disk"],
  EBUSY: ["backend_refused", "is in use as a mount point"],
  ENOSPC: ["backend_failed", "cannot be written: the disk is full"],
  EDQUOT: ["backend_failed", "cannot be written: the disk quota is used up"],
};

/** An `AppError`, or an abort's reason, as it is. */
export function toAppError(error: unknown, path: string, signal?: AbortSignal): unknown {
  if (error instanceof AppError || (signal?.aborted && error === signal.reason)) return error;
  const code = codeOf(error);
  const [kind, saying] = SAYINGS[code ?? ""] ?? [
    "backend_failed",
    `cannot be used (${code ?? "unknown error"})`,
  ];
  return new AppError(kind, `${quoted(path)} ${saying}.`, { cause: error });
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

export const isMissing = (error: unknown) => codeOf(error) === "ENOENT";

/** For a `catch`: nothing when there is no such file; throws anything else. */
export function unlessMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}
