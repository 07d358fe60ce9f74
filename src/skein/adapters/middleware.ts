// Middleware around a run, written as functions around a promise of the final message. The engine executes the run. A
// middleware sees its start, may replace its signal, and decides how it ends.

import {
  AppError,
  type AssistantMessage,
  abortRun,
  type HookFactory,
  type Outcome,
  type Run,
} from "../../index.ts";

export interface RunnerContext {
  readonly run: Run;
  readonly signal: AbortSignal;
}

/** Resolves with the final message, or rejects with the error of the run. */
export type Runner = (context: RunnerContext) => Promise<AssistantMessage>;

/**
 * Wraps a runner. A middleware may pass on another signal, return another message (even after an error), or reject. If it
 * rejects, the run fails and the thread does not keep its message.
 * If it does not call `next`, the model is not called. A steering message that keeps the run active starts a new pass.
 */
export type Middleware = (next: Runner) => Runner;

/** Creates a hook from middleware. The first middleware is the outermost. */
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

/** The part of a run from a user message to the final message. */
interface Pass {
  /** The signal passed to the innermost runner. */
  readonly signal: AbortSignal;
  readonly skipsModel: boolean;
  /** The result of the outermost middleware. */
  readonly message: Promise<AssistantMessage>;
  resolve(message: AssistantMessage): void;
  reject(error: unknown): void;
  end(outcome: Outcome): void;
}

/** Resolves when the innermost runner is reached, or when the outermost middleware settles without reaching it. */
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
    signal: signal ?? run.signal,
    skipsModel: signal === undefined,
    message,
    resolve,
    reject,
    end(outcome) {
      if (outcome.status === "success" && outcome.message) return resolve(outcome.message);
      reject(
        "error" in outcome ? outcome.error : abortRun(`The run ended with the status \`${outcome.status}\`.`),
      );
    },
  };
}

/** Fails a run that takes longer than `ms`. */
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

/** Converts any thrown value to an error with its text, so an error in a run never ends the process. */
export function withRecovery(): Middleware {
  return (next) => async (context) => {
    try {
      return await next(context);
    } catch (error) {
      throw error instanceof AppError ? error : abortRun(messageOf(error), error);
    }
  };
}

interface RunLogger {
  info(details: object, message: string): void;
  error(details: object, message: string): void;
}

export function withLogger(logger: RunLogger, name: string): Middleware {
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

/** Fails the run if `check` throws for its final message. `check` is not called for a failed run. */
export function withOutputGuardrail(check: (message: AssistantMessage) => void | Promise<void>): Middleware {
  return (next) => async (context) => {
    const message = await next(context);
    await check(message);
    return message;
  };
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
