// Logs each failure once, where it ends or is turned into something else, with its owner and its cause. No line contains
// messages of the conversation or secrets.

import { AppError } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import type { Failure } from "../core/run.ts";
import type { Claim } from "../core/stores.ts";
import type { Span, TraceRecorder } from "../core/tool.ts";
import type { Logger } from "../lib/logger.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";

export interface FailureLog {
  /** What the run has failed with. Undefined while it has not failed. */
  readonly cause: AppError | undefined;
  hear(failure: Failure): void;
  /** To be called once the run's last event is written. */
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
  // The next process, or the client, tries again: nothing is broken.
  const level = err.code === "shutting_down" ? "warn" : "error";
  logger[level]({ ...idsOf(claim), code: err.code, err }, "run failed");
}

function idsOf({ lease, run }: Claim) {
  const { tenant, user } = lease.owner;
  const { id: run_id, thread_id, agent, attempt } = run;
  return { run_id, thread_id, tenant, user, agent, attempt };
}

/** A logger writes all fields of an error, and those of another library's may hold keys. Of causes it writes the stack. */
function withoutFields(error: unknown): Error {
  if (error instanceof AppError) return error;
  if (!(error instanceof Error)) return new Error(String(error));
  const { name, message, stack = message, cause } = error;
  return Object.assign(new Error(message, { cause }), { name, stack });
}

// Traces as log lines: what a span was, how long it took, what it knew. For `LOG_LEVEL=debug`.
/** Of one span; those that come after them are left out. */
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
