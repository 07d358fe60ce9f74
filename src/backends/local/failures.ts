// What the operating system says, in the words of the port: about the agent's path, never the host's.

import { AppError } from "../../core/errors.ts";
import { failure } from "../failures.ts";

/** An `AppError`, or an abort's reason, as it is. */
export function toAppError(error: unknown, path: string, signal?: AbortSignal): unknown {
  if (error instanceof AppError || (signal?.aborted && error === signal.reason)) return error;
  return failure(codeOf(error) ?? "unknown error", path, error);
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

export const isMissing = (error: unknown) => codeOf(error) === "ENOENT";

/** For a `catch`: nothing when there is no such file; throws anything else. */
export function unlessMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}
