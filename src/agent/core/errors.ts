// The only error class, with a closed set of codes. `http/errors.ts` maps the codes to HTTP. The model's mistakes are tool
// results, not errors.

/** The closed set of error codes, used on the wire, in failed runs and in the log. */
export type ErrorCode =
  // The caller's request is wrong.
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
  // The request conflicts with the current state.
  | "already_exists"
  | "precondition_failed"
  | "thread_busy"
  | "queue_full"
  | "limit_exceeded"
  | "run_not_active"
  | "events_expired"
  | "interrupt_closed"
  // The model's provider failed or refused the call.
  | "model_auth"
  | "model_rejected"
  | "model_rate_limited"
  | "model_overloaded"
  | "model_unreachable"
  | "model_timeout"
  | "context_overflow"
  // The run failed.
  | "cancelled"
  | "max_iterations"
  | "run_aborted"
  | "hook_failed"
  | "output_invalid"
  | "crashed_too_often"
  | "lease_lost"
  // A backend or the process itself failed.
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
   * Name the problem, the value and a valid alternative in `message`. Clients see the message, so it must not
   * contain secrets or ids of other tenants. `cause` appears only in the log.
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

  /** Returns the part that clients may see. */
  toInfo(): ErrorInfo {
    return {
      code: this.code,
      message: this.message,
      ...(this.details === undefined ? {} : { details: { ...this.details } }),
    };
  }

  /**
   * Returns a thrown `AppError` unchanged. Any other value becomes an `internal` error, with the original as an
   * `Error` in `cause`.
   */
  static from(error: unknown): AppError {
    if (error instanceof AppError) return error;
    const cause = error instanceof Error ? error : new Error(String(error));
    return new AppError("internal", "Something went wrong on the server.", { cause });
  }
}

/** Throw this from any hook or tool to end the whole run, not only the current call. */
export function abortRun(message: string, cause?: unknown): AppError {
  return new AppError("run_aborted", message, { cause });
}

/** Attributes an error to the hook that threw it. Returns an `AppError` unchanged. */
export function hookFailed(name: string, error: unknown): AppError {
  if (error instanceof AppError) return error;
  return new AppError("hook_failed", `Hook \`${name}\` failed: ${messageOf(error)}`, { cause: error });
}

/** A limit of the run, or a quota of its tenant or user. */
export type LimitReason = "max_iterations" | "token_budget" | "time_budget" | "loop_detected" | "quota";

/**
 * Throw this from any hook or tool to end the run at a limit. The run then ends with `done` and this reason,
 * as it does for `max_iterations`.
 */
export class RunLimit extends AppError {
  readonly reason: LimitReason;

  /** `details` has the fields of `LimitDetails` except the message. */
  constructor(reason: LimitReason, message: string, details?: Record<string, unknown>) {
    super("run_aborted", message, details ? { details } : {});
    this.reason = reason;
  }
}

/**
 * True for errors that end the run wherever they are thrown. Any other error of a tool becomes the call's
 * result.
 */
export function endsTheRun(error: unknown): boolean {
  return error instanceof AppError && (error.code === "run_aborted" || error.code === "lease_lost");
}

export function hasCode(error: unknown, code: ErrorCode): error is AppError {
  return error instanceof AppError && error.code === code;
}

/** True if another process takes over this signal's run and the work that the run started. */
export function isHandover({ reason }: AbortSignal): boolean {
  return hasCode(reason, "lease_lost") || hasCode(reason, "shutting_down");
}

/** The result text for a call during which the server failed. */
export const SERVER_FAILED =
  "Outcome unknown: the server failed while this call was running. It may have taken effect; check before repeating it.";

/** Returns the result text for a call that this signal stopped. */
export function stoppedBecause({ reason }: AbortSignal): string {
  if (hasCode(reason, "unavailable")) return SERVER_FAILED;
  return reason instanceof AppError ? reason.message : "Cancelled before it finished.";
}

/** True if this signal's run was cancelled. A server error fails the run instead. */
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

/** True if the same request may succeed after a short wait. */
export function isTransient(error: unknown): error is AppError {
  return error instanceof AppError && TRANSIENT.has(error.code);
}

/** Returns the text of any thrown value, for a tool's error result. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
