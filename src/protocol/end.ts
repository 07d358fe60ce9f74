// How a run ended, for readers of its last event.

import { limitText } from "./end-texts.ts";
import type { EventData, StreamEvent } from "./event.ts";
import type { Interrupt } from "./interrupt.ts";
import type { Usage } from "./message.ts";

export interface End {
  /**
   * `asks`: `questions` wait for answers. `waits`: the turn continues when the result of a deferred call arrives. `limit` and
   * `failed`: `message` says why. `finished`: everything else, also a run that was stopped after a step.
   */
  readonly as: "finished" | "asks" | "waits" | "cancelled" | "limit" | "failed";
  readonly status: EventData<"done">["status"];
  /** The stop reason, or the code of the error. */
  readonly reason: string;
  /** Why the run reached its limit or failed, for people; empty for other ends. */
  readonly message: string;
  readonly usage: Usage | undefined;
  /** What the agent answered, as its `output_schema` has it. */
  readonly output: EventData<"done">["output"];
  /** The questions that are open, in the order in which they were asked. */
  readonly questions: readonly Interrupt[];
}

/** `questions`: those that are open when the event comes. */
export function endOf(
  event: Extract<StreamEvent, { event: "done" | "error" }>,
  questions: readonly Interrupt[],
): End {
  if (event.event === "error") {
    const { code, message, usage } = event.data;
    return { as: "failed", status: "error", reason: code, message, usage, output: undefined, questions };
  }
  const { status, stop_reason: reason, usage, output } = event.data;
  const as = kindOf(event.data, questions);
  return { as, status, reason, message: as === "limit" ? limitText(reason) : "", usage, output, questions };
}

function kindOf({ status, stop_reason }: EventData<"done">, questions: readonly Interrupt[]): End["as"] {
  if (status === "error") return "limit";
  if (status === "cancelled") return "cancelled";
  if (status === "success") return "finished";
  if (questions.length > 0) return "asks";
  return stop_reason === "tool_use" ? "waits" : "finished";
}
