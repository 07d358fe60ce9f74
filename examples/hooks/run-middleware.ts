// Middleware around a run: a deadline, a log and a guardrail. No recovery is needed, because a thrown error ends the
// run with an `error` event and never ends the process.

import { abortRun, type Hook } from "../../src/index.ts";

/** Ends a run that takes longer than `ms`, in any phase. */
export function deadline(ms: number): Hook {
  const expired = new AbortController();
  const within = (signal: AbortSignal) => AbortSignal.any([signal, expired.signal]);
  let timer: NodeJS.Timeout | undefined;
  return {
    name: "deadline",
    beforeAgent() {
      timer = setTimeout(() => expired.abort(abortRun(`The run took longer than ${ms} ms.`)), ms);
    },
    async *wrapModelCall(request, next) {
      const signal = within(request.signal);
      try {
        signal.throwIfAborted();
        return yield* next({ ...request, signal });
      } catch (error) {
        signal.throwIfAborted();
        throw error;
      }
    },
    wrapToolCall: (request, next) => next({ ...request, signal: within(request.signal) }),
    afterAgent: () => clearTimeout(timer),
  };
}

/** Logs the start of a run, and its end with its duration. */
export function logged(log: (line: string) => void): Hook {
  const begun = performance.now();
  return {
    name: "logged",
    beforeAgent: (run) => log(`${run.id} begins`),
    afterAgent(outcome, run) {
      log(`${run.id} ends with ${outcome.status} after ${Math.round(performance.now() - begun)} ms`);
    },
  };
}

/**
 * Fails the run if `faultOf` rejects the last answer. Viewers have already seen the answer, but the thread does not
 * store it.
 */
export function guardrail(faultOf: (answer: string) => string | undefined): Hook {
  return {
    name: "guardrail",
    async *wrapModelCall(request, next) {
      const completion = yield* next(request);
      const fault = completion.message.tool_calls ? undefined : faultOf(completion.message.content);
      if (fault) throw abortRun(fault);
      return completion;
    },
  };
}
