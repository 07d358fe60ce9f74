// Middleware around a run: functions around one that resolves with the final message. The run itself belongs to the
// engine; what stands around it is told when it begins, and decides about its end.

import { AppError, abortRun, messageOf } from "../../core/errors.ts";
import type { AssistantMessage } from "../../core/message.ts";
import type { Outcome } from "../../core/run.ts";
import type { Run } from "../../core/tool.ts";
import type { Logger } from "../../lib/logger.ts";
import type { HookFactory } from "../own-hooks.ts";

export interface RunnerContext {
  readonly run: Run;
  readonly signal: AbortSignal;
}

/** Resolves with the final message; rejects with what the run failed with. */
export type Runner = (context: RunnerContext) => Promise<AssistantMessage>;

/**
 * May pass another signal on, return another message (in the place of an error as well), or reject: the run then fails,
 * and the thread never holds the message. What does not call `next` answers without the model. A message that comes while
 * the run works, and keeps it working, begins a new pass.
 */
export type Middleware = (next: Runner) => Runner;

/** The first is outermost. */
export function fromMiddleware(...middleware: readonly Middleware[]): HookFactory {
  const around = (innermost: Runner) =>
    middleware.reduceRight<Runner>((next, layer) => layer(next), innermost);

  return () => {
    let pass: Pass | undefined;
    return {
      name: "middleware",
      async beforeAgent(run) {
        pass = await begin(around, run);
      },
      async *wrapModelCall(request, next, run) {
        const now = pass ?? (await begin(around, run));
        pass = now;
        const signal = AbortSignal.any([request.signal, now.signal]);
        try {
          if (!now.skipsModel) {
            signal.throwIfAborted();
            const completion = yield* next({ ...request, signal });
            if (completion.message.tool_calls) return completion;
            now.resolve(completion.message);
            return { ...completion, message: await settled() };
          }
        } catch (error) {
          request.signal.throwIfAborted();
          if (pass !== now) throw error;
          now.reject(now.signal.aborted ? now.signal.reason : error);
        }
        const message = await settled();
        request.signal.throwIfAborted();
        return { message, stop_reason: "end_turn" };

        function settled(): Promise<AssistantMessage> {
          pass = undefined;
          return now.message;
        }
      },
      wrapToolCall: (request, next) =>
        next(pass ? { ...request, signal: AbortSignal.any([request.signal, pass.signal]) } : request),
      async afterAgent(outcome) {
        pass?.end(outcome);
        await pass?.message.catch(() => {});
      },
    };
  };
}

/** From what a user says to the final message. */
interface Pass {
  /** The one that was passed to the innermost. */
  readonly signal: AbortSignal;
  readonly skipsModel: boolean;
  /** What the outermost comes to. */
  readonly message: Promise<AssistantMessage>;
  resolve(message: AssistantMessage): void;
  reject(error: unknown): void;
  end(outcome: Outcome): void;
}

/** Resolves when the innermost is reached, or when the outermost has an answer without it. */
async function begin(around: (innermost: Runner) => Runner, run: Run): Promise<Pass> {
  const reached = Promise.withResolvers<AbortSignal>();
  const { promise: final, resolve, reject } = Promise.withResolvers<AssistantMessage>();
  final.catch(() => {});
  const runner = around(({ signal }) => {
    reached.resolve(signal);
    return final;
  });
  const message = (async () => runner({ run, signal: run.signal }))().catch((error: unknown) => {
    throw error instanceof AppError ? error : abortRun(messageOf(error), error);
  });
  const signal = await Promise.race([reached.promise, message.then(() => undefined)]);
  message.catch(() => {});
  return {
    ...{ signal: signal ?? run.signal, skipsModel: signal === undefined, message, resolve, reject },
    end(outcome) {
      if (outcome.status === "success" && outcome.message) return resolve(outcome.message);
      reject("error" in outcome ? outcome.error : abortRun(`The run ended as ${outcome.status}.`));
    },
  };
}

/** Fails a run that takes longer than `ms`, whatever it is at. */
export function withTimeout(ms: number): Middleware {
  return (next) => async (context) => {
    const expired = new AbortController();
    const timer = setTimeout(() => expired.abort(abortRun(`The run took longer than ${ms} ms.`)), ms);
    try {
      return await next({ ...context, signal: AbortSignal.any([context.signal, expired.signal]) });
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Whatever is thrown further in is an error with its text. Nothing that is thrown in a run ends the process. */
export function withRecovery(): Middleware {
  return (next) => async (context) => {
    try {
      return await next(context);
    } catch (error) {
      throw error instanceof AppError ? error : abortRun(messageOf(error), error);
    }
  };
}

export function withLogger(logger: Pick<Logger, "info" | "error">, name: string): Middleware {
  return (next) => async (context) => {
    const started = performance.now();
    const details = () => ({ agent: name, run_id: context.run.id });
    const timed = () => ({ ...details(), duration_ms: Math.round(performance.now() - started) });
    logger.info(details(), "run started");
    try {
      const message = await next(context);
      logger.info(timed(), "run finished");
      return message;
    } catch (err) {
      logger.error({ ...timed(), err }, "run failed");
      throw err;
    }
  };
}

/** Fails the run with what `check` throws about its final message. Not called for a run that has failed. */
export function withOutputGuardrail(check: (message: AssistantMessage) => void | Promise<void>): Middleware {
  return (next) => async (context) => {
    const message = await next(context);
    await check(message);
    return message;
  };
}
