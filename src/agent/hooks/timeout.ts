// Limits how long each tool call may take and how long a model may send nothing. This is the innermost hook, so waiting for
// an approval or a retry does not count.

import { z } from "zod";
import { linkedTo } from "../../lib/async.ts";
import { Seconds } from "../../lib/units.ts";
import { AppError, endsTheRun } from "../core/errors.ts";
import { type CallModel, defineHook } from "../core/hook.ts";
import type { Completion, ModelRequest } from "../core/model.ts";
import { type DeltaSink, type Stream, tap, tapDeltas } from "../core/stream.ts";
import { failed, type ToolResult } from "../core/tool.ts";

const seconds = Seconds(86_400);

export const timeout = defineHook({
  name: "timeout",
  options: z.strictObject({
    tool: seconds
      .prefault(600)
      .describe("Maximum duration of one tool call. A call that waits for other agents has no limit."),
    model: seconds.prefault(300).describe("Maximum time without output from the model."),
  }),
  activeByDefault: () => true,
  create: (options) => ({
    name: "timeout",

    wrapModelCall: (request, next, _run, deltas) =>
      unlessSilent(request, { next, deltas, limit: options.model }),

    async *wrapToolCall(request, next) {
      if (request.tool?.annotations.waits) return yield* next(request);
      const expired = `Timed out after ${options.tool} s.`;
      const deadline = linkedTo(request.signal);
      let isLate = false;
      const expire = () => {
        isLate = !request.signal.aborted;
        deadline.abort(new DOMException(expired, "TimeoutError"));
      };
      const timer = setTimeout(expire, options.tool * 1000);
      try {
        const result = yield* next({ ...request, signal: deadline.signal });
        return isLate ? late(result, expired) : result;
      } catch (error) {
        if (!isLate || request.signal.aborted || endsTheRun(error)) throw error;
        return failed(expired);
      } finally {
        clearTimeout(timer);
        deadline.detach();
      }
    },
  }),
});

/** Keeps the output that a tool returned after it was aborted. */
function late(result: ToolResult, expired: string): ToolResult {
  return result.status === "done" ? failed(expired, result.output) : result;
}

interface WatchedCall {
  readonly next: CallModel;
  readonly deltas: DeltaSink | undefined;
  /** The limit in seconds. */
  readonly limit: number;
}

/**
 * Forwards the stream of a model call. Throws `model_timeout` when no event arrives for `limit` seconds. Only
 * the time spent waiting for the model counts, not the time that the reader spends on an event.
 */
async function* unlessSilent(
  request: ModelRequest,
  { next, deltas, limit }: WatchedCall,
): Stream<Completion> {
  const call = linkedTo(request.signal);
  let isWaiting = true;
  let silence: AppError | undefined;
  const expire = () => {
    if (!isWaiting) return;
    silence = new AppError("model_timeout", `The model sent nothing for ${limit} s.`);
    call.abort(silence);
  };
  const timer = setTimeout(expire, limit * 1000);
  const beginAgain = () => void timer.refresh();
  try {
    return yield* tap(
      next({ ...request, signal: call.signal }, tapDeltas(deltas, beginAgain)),
      () => {
        isWaiting = false;
      },
      () => {
        isWaiting = true;
        beginAgain();
      },
    );
  } catch (error) {
    throw silence ?? error;
  } finally {
    clearTimeout(timer);
    call.detach();
  }
}
