// The one error class, with a closed set of codes; `http/errors.ts` maps them to HTTP. The model's mistakes are tool
// results, not errors.

/** The closed set of codes: the same on the wire, in a failed run and in the log. */
export type ErrorCode =
  // what the caller sent
  | "invalid_request"
  | "unauthorized"
  | "credentials_expired"
  | "credentials_revoked"
  | "forbidden"
  | "not_found"
  | "not_recorded"
  | "method_not_allowed"
  | "request_timeout"
  | "payload_too_large"
  | "unsupported_media_type"
  | "range_not_satisfiable"
  // what does not fit the state of things
  | "already_exists"
  | "precondition_failed"
  | "thread_busy"
  | "queue_full"
  | "limit_exceeded"
  | "run_not_active"
  | "events_expired"
  | "interrupt_closed"
  // what the model's provider answered
  | "model_auth"
  | "model_rejected"
  | "model_rate_limited"
  | "model_overloaded"
  | "model_unreachable"
  | "model_timeout"
  | "context_overflow"
  // what went wrong in a run
  | "cancelled"
  | "max_iterations"
  | "run_aborted"
  | "hook_failed"
  | "output_invalid"
  | "crashed_too_often"
  | "lease_lost"
  // backends and the process itself
  | "backend_failed"
  | "backend_refused"
  | "config_invalid"
  | "unavailable"
  | "shutting_down"
  | "internal";

/** An error as clients see it: in problem+json, in the `error` event and in a failed run. */
export interface ErrorInfo {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: Record<string, unknown>;
}

export class AppError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  /**
   * `message` says what was wrong, with the value, and what would be right. It reaches clients:
   * no secret, no other tenant's id. `cause` stays in the log.
   */
  constructor(
    code: ErrorCode,
    message: string,
    options: { details?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "AppError";
    this.code = code;
    this.details = options.details;
  }

  /** The part that clients may see. */
  toInfo(): ErrorInfo {
    return {
      code: this.code,
      message: this.message,
      ...(this.details === undefined ? {} : { details: { ...this.details } }),
    };
  }

  /** The only normaliser: an unexpected throw becomes `internal`, its text stays in `cause`, which is an `Error`. */
  static from(error: unknown): AppError {
    if (error instanceof AppError) return error;
    const cause = error instanceof Error ? error : new Error(String(error));
    return new AppError("internal", "Something went wrong on the server.", { cause });
  }
}

/** Throw this from any hook or tool to end the whole run, not only the call at hand. */
export function abortRun(message: string, cause?: unknown): AppError {
  return new AppError("run_aborted", message, { cause });
}

/** An error that a hook threw, under the hook's name. An `AppError` stays as it is. */
export function hookFailed(name: string, error: unknown): AppError {
  if (error instanceof AppError) return error;
  return new AppError("hook_failed", `Hook \`${name}\` failed: ${messageOf(error)}`, { cause: error });
}

/** A limit of the run, or a quota of its tenant or user. */
export type LimitReason = "max_iterations" | "token_budget" | "time_budget" | "loop_detected" | "quota";

/**
 * Throw this from any hook or tool to end the run at a limit: with `done` and the reason, as `max_iterations` does.
 */
export class RunLimit extends AppError {
  readonly reason: LimitReason;

  /** `details`: as `LimitDetails` has them, without the message. */
  constructor(reason: LimitReason, message: string, details?: Record<string, unknown>) {
    super("run_aborted", message, details ? { details } : {});
    this.reason = reason;
  }
}

/** Errors that end the run wherever they are thrown; everything else a tool throws is the call's result. */
export function endsTheRun(error: unknown): boolean {
  return error instanceof AppError && (error.code === "run_aborted" || error.code === "lease_lost");
}

export function hasCode(error: unknown, code: ErrorCode): error is AppError {
  return error instanceof AppError && error.code === code;
}

/** Whether another process continues the run of this signal: it also continues what the run has started. */
export function isHandover({ reason }: AbortSignal): boolean {
  return hasCode(reason, "lease_lost") || hasCode(reason, "shutting_down");
}

/** The result of a call in which the server failed, as its model reads it. */
export const SERVER_FAILED =
  "Outcome unknown: the server failed while this call was running. It may have taken effect; check before repeating it.";

/** What the result of a call says that this signal has stopped. */
export function stoppedBecause({ reason }: AbortSignal): string {
  if (hasCode(reason, "unavailable")) return SERVER_FAILED;
  return reason instanceof AppError ? reason.message : "Cancelled before it finished.";
}

/** Whether the run of this signal is cancelled. An error of the server fails it. */
export function isCancellation({ aborted, reason }: AbortSignal): boolean {
  if (!aborted) return false;
  return (
    !(reason instanceof AppError) || reason.code === "cancelled" || reason.code === "credentials_revoked"
  );
}

const TRANSIENT: ReadonlySet<ErrorCode> = new Set([
  "model_rate_limited",
  "model_overloaded",
  "model_unreachable",
  "model_timeout",
]);

/** Whether the same request may succeed a little later. */
export function isTransient(error: unknown): error is AppError {
  return error instanceof AppError && TRANSIENT.has(error.code);
}

/** The text of anything thrown, for a tool's error result. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
