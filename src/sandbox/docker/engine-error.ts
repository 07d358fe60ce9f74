// Errors of a Docker engine: what its client throws becomes an `EngineError`, and that a message for users.

import { AppError } from "../../agent/core/errors.ts";

export class EngineError extends Error {
  override name = "EngineError";
  /** 404, 409, …; 0 when there was no answer. */
  readonly status: number;
  constructor(status: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.status = status;
  }
}

/** What the client of the engine threw, as an `EngineError`; any other error as it is. */
export function toEngineError(error: unknown): unknown {
  if (error instanceof EngineError || error instanceof AppError || !(error instanceof Error)) return error;
  const status = "statusCode" in error && typeof error.statusCode === "number" ? error.statusCode : 0;
  // The client writes "(HTTP code 404) no such container - " before what the engine says.
  const said = error.message.replace(/^\(HTTP code \d+\)[^-]*- /, "").trim();
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  return new EngineError(status, status === 0 && code ? `it cannot be reached (${code})` : said, error);
}

/** For a `catch`: ignores these statuses, which mean that nothing was left to do. */
export const unless =
  (...statuses: number[]) =>
  (error: unknown): undefined => {
    if (!(error instanceof EngineError) || !statuses.includes(error.status)) throw error;
  };

/** Undefined for 404. */
export const unlessMissing = <T>(answer: Promise<T>): Promise<T | undefined> => answer.catch(unless(404));

/**
 * An `EngineError` in words for users, any other error as it is. Tells what the engine refused; an error inside the engine
 * may name the host's folders, and is only logged.
 */
export function toAppError(error: unknown): unknown {
  if (!(error instanceof EngineError)) return error;
  if (error.status === 0)
    return new AppError("unavailable", `Cannot reach the Docker engine: ${error.message}.`, { cause: error });
  const why = error.status < 500 ? error.message : "the engine failed; see the server's log";
  return new AppError("backend_failed", `The sandbox cannot be created: ${why}`, { cause: error });
}
