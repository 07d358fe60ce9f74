// Records spans around model calls and tool calls. Every span ends exactly once. Without a recorder, the hook has no layers.

import { z } from "zod";
import { firstChars } from "../../lib/text.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import { AppError, messageOf } from "../core/errors.ts";
import { defineHook } from "../core/hook.ts";
import { textOf } from "../core/message.ts";
import type { Completion } from "../core/model.ts";
import { tap, tapDeltas } from "../core/stream.ts";
import type { Run, Span, ToolResult } from "../core/tool.ts";

/**
 * The maximum number of characters in a preview. A trace shows what happened. It is not a second copy of the
 * thread.
 */
const PREVIEW_CHARS = 500;

export const tracing = defineHook({
  name: "tracing",
  options: z.strictObject({}),
  activeByDefault: () => true,
  create(_, { recorder }) {
    if (!recorder) return { name: "tracing" };
    return {
      name: "tracing",

      async *wrapModelCall(request, next, run, deltas) {
        const span = recorder.startSpan("llm.call", {
          ...idsOf(run),
          model: request.model.name,
          message_count: request.messages.length,
        });
        try {
          const started = performance.now();
          let hasSpoken = false;
          const hear = ({ event }: StreamEvent) => {
            if (hasSpoken || event !== "on_chat_model_stream") return;
            hasSpoken = true;
            span.set("time_to_first_token_ms", Math.floor(performance.now() - started));
          };
          const completion = yield* tap(next(request, tapDeltas(deltas, hear)), hear);
          describeCompletion(span, completion);
          return completion;
        } catch (error) {
          const { code, message } = AppError.from(request.signal.aborted ? CANCELLED : error);
          span.set("error", preview(`${code}: ${message}`)).set("cause", causeOf(error));
          throw error;
        } finally {
          span.end();
        }
      },

      async *wrapToolCall(request, next, run) {
        const { id, name, args, malformed } = request.call;
        const span = recorder.startSpan("tool.call", {
          ...idsOf(run),
          tool_name: name,
          tool_call_id: id,
          tool_args: preview(malformed ?? JSON.stringify(args)),
        });
        try {
          const result = yield* next(request);
          describeResult(span, result);
          return result;
        } catch (error) {
          span.set("error", preview(messageOf(error)));
          throw error;
        } finally {
          span.end();
        }
      },
    };
  },
});

/** Returns the cause of an error, because the error's message may not explain what happened. */
const causeOf = (error: unknown) => {
  const { cause } = AppError.from(error);
  return cause === undefined ? undefined : preview(messageOf(cause));
};

const CANCELLED = new AppError("cancelled", "Cancelled before the model had finished.");

const idsOf = (run: Run) => ({ run_id: run.id, thread_id: run.threadId });

function describeCompletion(span: Span, { message, stop_reason }: Completion): void {
  const calls = message.tool_calls ?? [];
  span
    .set("content_length", message.content.length)
    .set("content_preview", preview(message.content))
    .set("tool_calls_count", calls.length)
    .set(
      "tool_names",
      calls.map((call) => call.name),
    )
    .set("model", message.model)
    .set("usage", message.usage)
    .set("stop_reason", stop_reason);
}

function describeResult(span: Span, result: ToolResult): void {
  if (result.status === "interrupted") {
    span.set("interrupted", true);
    return;
  }
  const output = textOf(result.output);
  span.set("output_length", output.length).set("output_preview", preview(output));
  if (result.error !== undefined) span.set("error", preview(result.error));
}

const preview = (text: string) => firstChars(text, PREVIEW_CHARS);
