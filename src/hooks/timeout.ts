// Time limits for a tool call as a whole and for the silence of a model. The innermost hook, so that waiting for an approval or
// a retry does not count.

import { z } from "zod";
import { AppError, endsTheRun } from "../core/errors.ts";
import { defineHook } from "../core/hook.ts";
import type { Completion } from "../core/model.ts";
import { type Stream, tap } from "../core/stream.ts";
import { failed, type ToolResult } from "../core/tool.ts";

const seconds = z.number().positive().max(86_400);

export const timeout = defineHook({
  name: "timeout",
  options: z.strictObject({
    tool: seconds
      .default(600)
      .describe("Seconds that one tool call may take, unless it waits for other agents."),
    model: seconds.default(300).describe("Seconds that a model may say nothing."),
  }),
  activeByDefault: () => true,
  create: (options) => ({
    name: "timeout",

    wrapModelCall(request, next) {
      const silence = new AbortController();
      const signal = AbortSignal.any([request.signal, silence.signal]);
      return unlessSilent(next({ ...request, signal }), silence, options.model);
    },

    async *wrapToolCall(request, next) {
      if (request.tool?.annotations.waits) return yield* next(request);
      const expired = `Timed out after ${options.tool} s.`;
      const deadline = new AbortController();
      const timer = setTimeout(
        () => deadline.abort(new DOMException(expired, "TimeoutError")),
        options.tool * 1000,
      );
      const signal = AbortSignal.any([request.signal, deadline.signal]);
      try {
        const result = yield* next({ ...request, signal });
        return deadline.signal.aborted ? late(result, expired) : result;
      } catch (error) {
        if (!deadline.signal.aborted || request.signal.aborted || endsTheRun(error)) throw error;
        return failed(expired);
      } finally {
        clearTimeout(timer);
      }
    },
  }),
});

/** Keeps the output that a tool returned after it was aborted. */
function late(result: ToolResult, expired: string): ToolResult {
  return result.status === "done" ? failed(expired, result.output) : result;
}

/**
 * Forwards `stream`; throws `model_timeout` when no event comes for `limit` seconds. Only the time spent waiting for the
 * model counts, not what the reader does with an event.
 */
async function* unlessSilent(
  stream: Stream<Completion>,
  silence: AbortController,
  limit: number,
): Stream<Completion> {
  let isWaiting = true;
  const expire = () => silence.abort(new AppError("model_timeout", `The model said nothing for ${limit} s.`));
  const timer = setTimeout(() => isWaiting && expire(), limit * 1000);
  try {
    return yield* tap(
      stream,
      () => {
        isWaiting = false;
      },
      () => {
        isWaiting = true;
        timer.refresh();
      },
    );
  } catch (error) {
    throw silence.signal.aborted ? silence.signal.reason : error;
  } finally {
    clearTimeout(timer);
  }
}
