// What runs write to the server's log: each failure once, with owner and cause, and for `LOG_LEVEL=debug` every span. No line
// contains messages of the conversation or secrets.

import { AppError } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import type { Failure } from "../core/run.ts";
import type { Claim } from "../core/stores.ts";
import type { Span, TraceRecorder } from "../core/tool.ts";
import type { Logger } from "../lib/logger.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";

export interface FailureLog {
  /** The error that failed the run; undefined if there is none. */
  readonly cause: AppError | undefined;
  hear(failure: Failure): void;
  /** Call it once the run's last event is written. */
  ended(last: StreamEvent | undefined): void;
}

const SAYINGS = {
  hook: "hook failed",
  model: "model given up",
  tool: "tool endpoint failed",
} as const satisfies Record<Exclude<Failure["what"], "run">, string>;

export function failureLog(logger: Logger, claim: Claim): FailureLog {
  let cause: AppError | undefined;
  return {
    get cause() {
      return cause;
    },
    hear({ what, error, code, ...about }) {
      if (what === "run") {
        cause = AppError.from(error);
        return;
      }
      const err = withoutFields(error);
      const own = err instanceof AppError ? err.code : what === "hook" ? "hook_failed" : "internal";
      logger.warn({ ...idsOf(claim), ...omitUndefined(about), code: code ?? own, err }, SAYINGS[what]);
    },
    ended(last) {
      if (last?.event === "error") logFailedRun(logger, claim, cause);
      if (last?.event !== "done" || last.data.status !== "error") return;
      logger.warn({ ...idsOf(claim), code: last.data.stop_reason }, "run ended at a limit");
    },
  };
}

export function logFailedRun(logger: Logger, claim: Claim, error: unknown): void {
  const err = AppError.from(error);
  // Another process or the client retries: nothing is broken.
  const level = err.code === "shutting_down" ? "warn" : "error";
  logger[level]({ ...idsOf(claim), code: err.code, err }, "run failed");
}

function idsOf({ lease, run }: Claim) {
  const { tenant, user } = lease.owner;
  const { id: run_id, thread_id, agent, attempt } = run;
  return { run_id, thread_id, tenant, user, agent, attempt };
}

/** Loggers write all fields of an error, and those of a library's errors may hold keys. Of causes they write the stack. */
function withoutFields(error: unknown): Error {
  if (error instanceof AppError) return error;
  if (!(error instanceof Error)) return new Error(String(error));
  const { name, message, stack = message, cause } = error;
  return Object.assign(new Error(message, { cause }), { name, stack });
}

/** Events logged per span; further ones are dropped. */
const MAX_EVENTS = 100;

export function logRecorder(logger: Pick<Logger, "debug">): TraceRecorder {
  return {
    startSpan(name, attributes) {
      const started = performance.now();
      const known: Record<string, unknown> = { ...attributes };
      const events: object[] = [];
      const sinceStart = () => Math.round(performance.now() - started);
      const span: Span = {
        set(key, value) {
          known[key] = value;
          return span;
        },
        recordEvent(event, attributes) {
          if (events.length < MAX_EVENTS) events.push({ ...attributes, event, after_ms: sinceStart() });
          return span;
        },
        end: () =>
          logger.debug?.(
            { ...known, ...(events.length > 0 ? { events } : {}), duration_ms: sinceStart() },
            name,
          ),
      };
      return span;
    },
    recordEvent: (name, attributes) => logger.debug?.(attributes, name),
  };
}
