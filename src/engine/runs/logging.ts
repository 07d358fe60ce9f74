// Writes the server's log about runs: one line for each run that ends, and one for each failure, with its owner and
// cause. With `LOG_LEVEL=debug`, also logs every span. The log never contains messages or secrets.

import { AppError, hasCode } from "../../agent/core/errors.ts";
import { exhausted } from "../../agent/core/failures.ts";
import type { Failure } from "../../agent/core/run.ts";
import type { Claim } from "../../agent/core/stores.ts";
import type { Span, TraceRecorder } from "../../agent/core/tool.ts";
import { atMostEvery } from "../../lib/at-most-every.ts";
import type { Logger } from "../../lib/logger.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import { createReporter, type RunReport } from "./report.ts";
import type { RunObserver, RunServices } from "./services.ts";
import { traceIdIn } from "./tracing.ts";

export interface RunLog extends RunObserver {
  /** The error that caused the run to fail, or undefined. */
  readonly cause: AppError | undefined;
  hear(failure: Failure): void;
  /** Call this after the run's last event is written. */
  ended(last: StreamEvent | undefined): void;
}

const SAYINGS = {
  hook: "hook failed",
  model: "model given up",
  tool: "tool endpoint failed",
  reply: "odd reply from a provider",
} as const satisfies Record<Exclude<Failure["what"], "run" | "resource">, string>;

export function runLog(services: Pick<RunServices, "logger" | "traces">, claim: Claim): RunLog {
  const { logger } = services;
  const ids = idsOf(services, claim);
  let cause: AppError | undefined;
  const { report, ...reporter } = createReporter(claim);
  return {
    ...reporter,
    get cause() {
      return cause;
    },
    hear({ what, error, code, ...about }) {
      if (what === "run") {
        cause = AppError.from(error);
        return;
      }
      if (what === "reply" && !isNews(`${code} ${about.model}`)) return;
      if (what === "resource") return tellOfLack(logger, error, { ...ids, ...omitUndefined(about) });
      const err = withoutFields(error);
      const own = err instanceof AppError ? err.code : what === "hook" ? "hook_failed" : "internal";
      logger.warn({ ...ids, ...omitUndefined(about), code: code ?? own, err }, SAYINGS[what]);
    },
    ended(last) {
      if (last?.event === "error") logFailedRun(services, claim, cause, report());
      if (last?.event !== "done") return;
      const { status, stop_reason, message } = last.data;
      const line = { ...ids, status, stop_reason, ...omitUndefined({ message }), ...report() };
      if (status === "error") logger.warn({ ...line, code: stop_reason }, "run ended at a limit");
      else logger.info(line, "run ended");
    },
  };
}

/** The number of milliseconds between two log lines about the same resource. */
const LACK_MS = 10_000;

/** The rate limiters for these warnings, by logger and resource. */
const lacks = new WeakMap<Pick<Logger, "warn">, Map<string, (line: object) => void>>();

/**
 * Logs that a call or request failed because the machine has run out of a resource. Logs nothing for any other `error`.
 */
export function tellOfLack(logger: Pick<Logger, "warn">, error: unknown, about: object): void {
  const resource = exhausted(error);
  if (resource === undefined) return;
  const known = lacks.get(logger) ?? new Map<string, (line: object) => void>();
  lacks.set(logger, known);
  const tell =
    known.get(resource) ??
    atMostEvery<object>(LACK_MS, (last, calls) =>
      logger.warn(
        { ...last, resource, calls },
        "calls fail because the machine has run out of a resource that they need",
      ),
    );
  known.set(resource, tell);
  tell({ ...about, err: withoutFields(error) });
}

/** The notes about model replies that have already been logged. */
const said = new Set<string>();
const MAX_SAID = 1_000;

function isNews(remark: string): boolean {
  if (said.has(remark) || said.size >= MAX_SAID) return false;
  said.add(remark);
  return true;
}

/** `report` is present for a run that fails within the loop. */
export function logFailedRun(
  services: Pick<RunServices, "logger" | "traces">,
  claim: Claim,
  error: unknown,
  report?: RunReport,
): void {
  const err = AppError.from(error);
  // Another process or the client will retry, so nothing is broken.
  const level = err.code === "shutting_down" ? "warn" : "error";
  services.logger[level](
    { ...idsOf(services, claim), status: "error", code: err.code, err, ...report },
    "run failed",
  );
}

/**
 * Logs why work between runs failed. Only warns if the store is unreachable, because that is not a fault of this process
 * and the work is retried.
 */
export function logFailure(
  logger: Logger,
  line: { readonly err: unknown; readonly thread_id?: string },
  text: string,
): void {
  if (hasCode(line.err, "unavailable")) logger.warn(line, text);
  else logger.error(line, text);
}

function idsOf(services: Pick<RunServices, "traces">, { lease, run, request }: Claim) {
  const { tenant, user } = lease.owner;
  const { id: run_id, thread_id, agent, attempt } = run;
  const { origin } = request;
  const trace_id = traceIdIn(services, { id: run_id, origin });
  const known = omitUndefined({ request_id: origin?.request_id, trace_id });
  return { run_id, thread_id, tenant, user, agent, attempt, ...known };
}

/**
 * Loggers write all fields of an error, and a library's errors may contain API keys in their fields. For causes,
 * loggers write only the stack.
 */
function withoutFields(error: unknown): Error {
  if (error instanceof AppError) return error;
  if (!(error instanceof Error)) return new Error(String(error));
  const { name, message, stack = message, cause } = error;
  return Object.assign(new Error(message, { cause }), { name, stack });
}

/** The maximum number of events logged per span. Further events are dropped. */
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
