// What goes wrong with files, in the words of the port: about the agent's path, never the host's.

import { AppError, type ErrorCode } from "../core/errors.ts";
import { quoted } from "./paths.ts";

/** By the system's name for it, or by ours for what the system does not mind. */
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
  EFBIG: ["backend_failed", "cannot be written: it would be larger than a file may be"],
  ENOSPC: ["backend_failed", "cannot be written: the disk is full"],
  EDQUOT: ["backend_failed", "cannot be written: the disk quota is used up"],
  OUTSIDE: ["backend_refused", "is a link that leads out of the workspace"],
  DANGLING: ["backend_refused", "is a link to nothing. Remove it first"],
  NOFILE: ["invalid_request", "is a pipe, a socket or a device, not a file"],
  NOFOLDER: ["invalid_request", "is a file, not a folder"],
  GONE: ["backend_failed", "was replaced while it was read. Read it again"],
  STAGING: [
    "backend_refused",
    "cannot be written: `.skein` in the workspace is not a folder. Remove it first",
  ],
  NO_WORKSPACE: ["backend_failed", "cannot be reached: the workspace is not there"],
};

export function failure(what: string, path: string, cause?: unknown): AppError {
  const [code, saying] = SAYINGS[what] ?? ["backend_failed", `cannot be used (${what})`];
  return new AppError(code, `${quoted(path)} ${saying}.`, { cause });
}
