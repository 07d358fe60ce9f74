// Notes that a conversation shows about its runs, beside its messages.

import type { NoteCell } from "./cells.ts";
import { type Ending, type Outcome, outcomeOf } from "./outcome.ts";

export type Note = Pick<NoteCell, "text" | "tone" | "outcome" | "reason">;

const LIMITS: Readonly<Record<string, string>> = {
  max_iterations: "The run has made as many steps as the agent may make",
  token_budget: "The run has used as many tokens as the agent may use",
  time_budget: "The run has taken as long as the agent may take",
  loop_detected: "The run repeated itself",
  quota: "Your quota is used up",
};

/** Undefined when there is nothing to say. */
export function endOf(ending: Ending, error?: { readonly message: string }): Note | undefined {
  const outcome = outcomeOf(ending, false);
  if (error) return { text: error.message, tone: "error", outcome };
  const said = ended(outcome, ending.stop_reason);
  return said && { ...said, outcome, reason: ending.stop_reason };
}

function ended(outcome: Outcome, reason = ""): Note | undefined {
  if (outcome === "stopped")
    return {
      text: reason === "interrupt" ? "Stopped after a step. Send a message to continue." : "Stopped.",
      tone: "quiet",
    };
  if (outcome === "failed")
    return {
      text: `${LIMITS[reason] ?? `Stopped: ${reason}`}. Send a message to continue.`,
      tone: "warning",
    };
  if (outcome === "empty") return { text: "The model answered nothing.", tone: "quiet" };
  if (reason === "refusal") return { text: "The model declined to answer.", tone: "quiet" };
  if (reason === "max_tokens")
    return { text: "The answer was cut off at the model's limit of tokens.", tone: "quiet" };
  return undefined;
}
