// Retries a model that is temporarily unavailable, then calls its fallback. After a run has switched to the fallback, it
// never calls the first model again.

import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { backoff } from "../../lib/backoff.ts";
import { Seconds } from "../../lib/units.ts";
import { warning } from "../../protocol/event.ts";
import { AppError, isTransient } from "../core/errors.ts";
import { type CallModel, defineHook } from "../core/hook.ts";
import type { Completion, Model, ModelRequest } from "../core/model.ts";
import { repeatModelCall, reportFailure } from "../core/run.ts";
import type { Stream } from "../core/stream.ts";
import type { Run } from "../core/tool.ts";

const Options = z.strictObject({
  patience: Seconds(3600, (seconds) => seconds >= 0)
    .prefault(60)
    .describe("Maximum time between a model's first failure and its last retry."),
  attempts: z
    .int()
    .min(1)
    .max(10)
    .optional()
    .describe(
      "Maximum number of calls to one model. Default: 10 when the provider reports that it is busy (429, 5xx) and the model has no fallback, otherwise 3.",
    ),
  base_ms: z
    .int()
    .min(1)
    .default(500)
    .describe(
      "Maximum random wait before the second attempt, in milliseconds. It doubles with each attempt.",
    ),
  cap_ms: z
    .int()
    .min(1)
    .max(60_000)
    .default(30_000)
    .describe("Maximum random wait before any attempt, in milliseconds."),
});
type Options = z.output<typeof Options>;

/**
 * The maximum number of attempts. A provider that reports being busy gets more attempts than one that does
 * not respond.
 */
const ATTEMPTS = { busy: 10, other: 3 };

export const retry = defineHook({
  name: "retry",
  userMay: "disable",
  options: Options,
  activeByDefault: () => true,
  create(options) {
    const givenUp = new Set<Model>();
    return {
      name: "retry",
      wrapModelCall(request, next, run, deltas) {
        const model = firstOf(request.model, givenUp);
        const first = { ...request, model };
        const ask: CallModel = (asked) => next(asked, deltas);
        return model.fallback ? withFallbacks(first, ask, run) : persist(first, ask, { options, run });
      },
    };

    async function* withFallbacks(first: ModelRequest, next: CallModel, run: Run): Stream<Completion> {
      for (let request = first; ; ) {
        const { model, signal } = request;
        try {
          return yield* persist(request, next, { options, run });
        } catch (error) {
          const { fallback } = model;
          if (!fallback || signal.aborted || !isUnavailable(error)) throw error;
          givenUp.add(model);
          reportFailure(run, { what: "model", error, model: model.name, fallback: fallback.name });
          yield warning(
            "model_fallback",
            `Model \`${model.name}\` is unavailable (${error.code}). Switching to \`${fallback.name}\`.`,
          );
          request = { ...request, model: fallback };
        }
      }
    }
  },
});

function firstOf(model: Model, givenUp: ReadonlySet<Model>): Model {
  return model.fallback && givenUp.has(model) ? firstOf(model.fallback, givenUp) : model;
}

/** True if another model may still answer after this error. */
function isUnavailable(error: unknown): error is AppError {
  return isTransient(error) || (error instanceof AppError && error.code === "model_auth");
}

interface Caller {
  readonly options: Options;
  readonly run: Run;
}

/** Calls one model at most `attempts` times within `patience`. */
async function* persist(
  request: ModelRequest,
  next: CallModel,
  { options, run }: Caller,
): Stream<Completion> {
  const { model, signal } = request;
  let failedAt: number | undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      return yield* next(request);
    } catch (error) {
      if (signal.aborted || !isTransient(error)) throw error;
      const most = options.attempts ?? attemptsAfter(error, model);
      failedAt ??= performance.now();
      const waited = performance.now() - failedAt;
      const asked = askedWait(error);
      if (attempt === most || waited + asked > options.patience * 1000) throw givenUp(error, attempt, waited);
      const wait = asked + backOff(attempt, options);
      yield warning(
        "model_retry",
        `Model \`${model.name}\` failed (${error.code}). Retrying in ${inSeconds(wait)} (attempt ${attempt + 1} of ${most}).`,
      );
      await sleep(wait, undefined, { signal });
      repeatModelCall(run);
    }
  }
}

function attemptsAfter({ code }: AppError, { fallback }: Model): number {
  const isBusy = code === "model_rate_limited" || code === "model_overloaded";
  return isBusy && !fallback ? ATTEMPTS.busy : ATTEMPTS.other;
}

/** Returns the last failure with the number of attempts and the time spent on them. */
function givenUp(error: AppError, attempts: number, waited: number): AppError {
  if (attempts === 1) return error;
  const { code, message, details, cause } = error;
  const words = `${message.replace(/\.$/, "")}. All ${attempts} attempts within ${inSeconds(waited)} failed.`;
  return new AppError(code, words, {
    details: { ...details, attempts, waited_ms: Math.round(waited) },
    cause,
  });
}

/** Returns the wait that the provider requested, in ms, or 0 if it requested none. */
function askedWait({ details }: AppError): number {
  const asked = details?.retry_after_ms;
  return typeof asked === "number" && asked > 0 ? asked : 0;
}

/**
 * Returns the delay before a retry: exponential back-off with full jitter, so calls that failed together do
 * not retry together.
 */
function backOff(attempt: number, { base_ms, cap_ms }: Options): number {
  return backoff(attempt - 1, { base: base_ms, cap: cap_ms, jitter: 1 });
}

const inSeconds = (ms: number) => `${ms < 1000 ? Math.ceil(ms / 100) / 10 : Math.round(ms / 1000)} s`;
