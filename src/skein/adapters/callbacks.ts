// Calls one function per kind of event of a run: `streamTo(agent.run("Hello"), { onTextDelta: print })`.

import {
  type AgentHandle,
  AppError,
  type ErrorCode,
  hasCode,
  type StreamEvent,
  type ToolCall,
} from "../../index.ts";

export interface ToolOutput {
  readonly tool_call_id: string;
  readonly name: string;
  readonly content: string;
  readonly is_error: boolean;
}

/**
 * The functions to call for a run's events. Each call is awaited. If a function throws, the run is cancelled and ends
 * with `onError`.
 */
export interface StreamCallbacks {
  onTextDelta?(text: string): void | Promise<void>;
  /** `id` is the message id. `onReasoningEnd` gets the whole text. */
  onReasoningStart?(id: string, text: string): void | Promise<void>;
  onReasoningDelta?(id: string, text: string): void | Promise<void>;
  onReasoningEnd?(id: string, text: string): void | Promise<void>;
  onToolCall?(call: ToolCall): void | Promise<void>;
  onToolResult?(result: ToolOutput): void | Promise<void>;
  /** Called last if the run has ended or waits for an answer. Exactly one of this function and `onError` is called. */
  onComplete?(): void | Promise<void>;
  /**
   * Called last if the run failed, was cancelled, reached a limit or moved to another process, or if a callback threw.
   */
  onError?(error: unknown): void | Promise<void>;
}

/**
 * Calls the callbacks for a run's events, except those of subagents. Resolves when the run has ended and every callback
 * has returned.
 */
export async function streamTo(handle: AgentHandle, callbacks: StreamCallbacks): Promise<void> {
  const dispatch = dispatcher(callbacks);
  try {
    let last: StreamEvent["event"] | undefined;
    for await (const event of handle.events()) {
      if (!event.path) await dispatch(event);
      last = event.event;
    }
    // Without `done`, the run failed or moved to another process, so the result rejects with the reason.
    if (last !== "done") await handle.result;
    await callbacks.onComplete?.();
  } catch (error) {
    if (!hasCode(error, "shutting_down")) await handle.cancel();
    await callbacks.onError?.(error);
  }
}

/** Returns a function that throws if the run does not succeed. */
function dispatcher(callbacks: StreamCallbacks): (event: StreamEvent) => Promise<void> {
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
        // The log contains only codes of `ErrorCode`.
        throw new AppError(event.data.code as ErrorCode, event.data.message);
      case "done":
        return assertSuccess(event.data);
    }
  };
}

function assertSuccess({
  status,
  stop_reason,
  message = stop_reason,
}: Extract<StreamEvent, { event: "done" }>["data"]): void {
  if (status === "cancelled") throw new AppError("cancelled", "The run was cancelled.");
  if (status !== "error") return;
  const code = stop_reason === "max_iterations" ? "max_iterations" : "run_aborted";
  throw new AppError(code, message);
}
