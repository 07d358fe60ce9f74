// A run told by callbacks, one for each kind of thing.

import { AppError, type ErrorCode, hasCode } from "../../core/errors.ts";
import type { StreamEvent } from "../../core/event.ts";
import type { ToolCall } from "../../core/message.ts";
import type { AgentHandle } from "../handle.ts";

export interface ToolOutput {
  readonly tool_call_id: string;
  readonly name: string;
  readonly content: string;
  readonly is_error: boolean;
}

/** Each may be absent, and is waited for. One that throws cancels the run, which then ends with `onError`. */
export interface StreamCallbacks {
  onTextDelta?(text: string): void | Promise<void>;
  /** A block of thinking, `id` that of its message; whole at its end. */
  onReasoningStart?(id: string, text: string): void | Promise<void>;
  onReasoningDelta?(id: string, text: string): void | Promise<void>;
  onReasoningEnd?(id: string, text: string): void | Promise<void>;
  onToolCall?(call: ToolCall): void | Promise<void>;
  onToolResult?(result: ToolOutput): void | Promise<void>;
  /** The run has ended, or waits for an answer. Either this or `onError` is called, last. */
  onComplete?(): void | Promise<void>;
  /** The run has failed, was cancelled, has come to a limit, or is left for another process; or a callback has thrown this. */
  onError?(error: unknown): void | Promise<void>;
}

/** Resolves when the handle's run has ended and everything was told. What subagents say is not. */
export async function streamTo(handle: AgentHandle, callbacks: StreamCallbacks): Promise<void> {
  const tell = teller(callbacks);
  try {
    let last: StreamEvent["event"] | undefined;
    for await (const event of handle.events()) {
      if (!event.path) await tell(event);
      last = event.event;
    }
    // Without its end the run may go on elsewhere: the result rejects with why nothing more is told.
    if (last !== "done") await handle.result;
    await callbacks.onComplete?.();
  } catch (error) {
    if (!hasCode(error, "shutting_down")) await handle.cancel();
    await callbacks.onError?.(error);
  }
}

/** Throws what the run ended with when that is no success. */
function teller(callbacks: StreamCallbacks): (event: StreamEvent) => Promise<void> {
  let message = "";
  let thought: string | undefined;

  const endThought = async () => {
    const whole = thought;
    thought = undefined;
    if (whole !== undefined) await callbacks.onReasoningEnd?.(message, whole);
  };
  const think = async (text: string) => {
    if (thought === undefined) await callbacks.onReasoningStart?.(message, "");
    thought = (thought ?? "") + text;
    await callbacks.onReasoningDelta?.(message, text);
  };

  return async (event) => {
    switch (event.event) {
      case "on_chat_model_start":
        message = event.data.message_id;
        return;
      case "on_chat_model_stream":
        if ("reasoning_delta" in event.data) return think(event.data.reasoning_delta);
        await endThought();
        if ("delta" in event.data) await callbacks.onTextDelta?.(event.data.delta);
        return;
      case "on_chat_model_end":
        return endThought();
      case "on_tool_start":
        await callbacks.onToolCall?.({ id: event.data.call_id, name: event.name, args: event.data.args });
        return;
      case "on_message": {
        const said = event.data.message;
        if (said.role !== "tool") return;
        const { tool_call_id, name, error } = said;
        const content =
          error ?? (typeof said.content === "string" ? said.content : JSON.stringify(said.content));
        await callbacks.onToolResult?.({ tool_call_id, name, content, is_error: error !== undefined });
        return;
      }
      case "error":
        // The log holds codes of ours.
        throw new AppError(event.data.code as ErrorCode, event.data.message);
      case "done":
        return assertWell(event.data);
    }
  };
}

function assertWell({ status, stop_reason }: Extract<StreamEvent, { event: "done" }>["data"]): void {
  if (status === "cancelled") throw new AppError("cancelled", "The run was cancelled.");
  if (status !== "error") return;
  const code = stop_reason === "max_iterations" ? "max_iterations" : "run_aborted";
  throw new AppError(code, `The run ended at a limit: ${stop_reason}.`);
}
