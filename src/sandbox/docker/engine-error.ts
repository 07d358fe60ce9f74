// Converts errors of a Docker engine from the client's error to an `EngineError`, and from an `EngineError` to a
// message for users.

import { AppError } from "../../agent/core/errors.ts";

export class EngineError extends Error {
  override name = "EngineError";
  /** The HTTP status, or 0 if the engine did not answer. */
  readonly status: number;
  constructor(status: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.status = status;
  }
}

/** Converts an error of the engine's client to an `EngineError`. Returns any other error unchanged. */
export function toEngineError(error: unknown): unknown {
  if (error instanceof EngineError || error instanceof AppError || !(error instanceof Error)) return error;
  const status = "statusCode" in error && typeof error.statusCode === "number" ? error.statusCode : 0;
  // The client prefixes the engine's message with "(HTTP code 404) no such container - ".
  const said = error.message.replace(/^\(HTTP code \d+\)[^-]*- /, "").trim();
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  return new EngineError(status, status === 0 && code ? `it cannot be reached (${code})` : said, error);
}

/** For use in `catch`. Ignores errors with these statuses, which mean that there was nothing left to do. */
export const unless =
  (...statuses: number[]) =>
  (error: unknown): undefined => {
    if (!(error instanceof EngineError) || !statuses.includes(error.status)) throw error;
  };

/** Resolves with undefined if the engine returns 404. */
export const unlessMissing = <T>(answer: Promise<T>): Promise<T | undefined> => answer.catch(unless(404));

/**
 * Converts an `EngineError` to an error for users. Returns any other error unchanged. The message contains the reason
 * for a refusal. Internal errors of the engine are only logged, because they may name the host's folders.
 */
export function toAppError(error: unknown): unknown {
  if (!(error instanceof EngineError)) return error;
  if (error.status === 0)
    return new AppError("unavailable", `Cannot reach the Docker engine: ${error.message}.`, { cause: error });
  const why = error.status < 500 ? error.message : "the engine failed; see the server's log";
  return new AppError("backend_failed", `The sandbox cannot be created: ${why}`, { cause: error });
}
