// Notes that a conversation shows about its runs, beside its messages.

import type { NoteCell } from "./cells.ts";
import type { Run, StreamEvent } from "./wire.ts";

export type Note = Pick<NoteCell, "text" | "tone">;

const LIMITS: Readonly<Record<string, string>> = {
  max_iterations: "The run has made as many steps as the agent may make",
  token_budget: "The run has used as many tokens as the agent may use",
  time_budget: "The run has taken as long as the agent may take",
  loop_detected: "The run repeated itself",
  quota: "Your quota is used up",
};

/** Undefined when there is nothing to say. */
export function noteOf(event: StreamEvent): Note | undefined {
  if (event.event === "warning") return { text: event.data.message, tone: "warning" };
  if (event.event === "error") return { text: event.data.message, tone: "error" };
  return event.event === "done" ? ended(event.data.status, event.data.stop_reason) : undefined;
}

/** The same for a run whose events are not read again. */
export function endOf({ status, stop_reason, error }: Run): Note | undefined {
  if (error) return { text: error.message, tone: "error" };
  return ended(status, stop_reason);
}

function ended(status: string, reason = ""): Note | undefined {
  if (status === "cancelled") return { text: "Stopped.", tone: "quiet" };
  if (status === "interrupted" && reason !== "tool_use")
    return { text: "Stopped after a step. Send a message to continue.", tone: "quiet" };
  if (status === "error")
    return {
      text: `${LIMITS[reason] ?? `Stopped: ${reason}`}. Send a message to continue.`,
      tone: "warning",
    };
  if (reason === "refusal") return { text: "The model declined to answer.", tone: "quiet" };
  if (reason === "max_tokens")
    return { text: "The answer was cut off at the model's limit of tokens.", tone: "quiet" };
  return undefined;
}
