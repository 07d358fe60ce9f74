// Decides how a run ended, in the terms that a person would use. Every list, header and notification uses this function.

import { type End, kindOfEnd } from "../protocol/end.ts";
import type { Run } from "./wire.ts";

/**
 * `waits`: the run has an open question. `answered`: the run asked a question, and another run continued. `stopped`: a
 * person stopped it, either at once or after a step. `empty`: the model wrote nothing. `cut`: the answer was cut off at
 * the model's token limit.
 */
export type Outcome =
  | "queued"
  | "running"
  | "waits"
  | "answered"
  | "stopped"
  | "failed"
  | "empty"
  | "cut"
  | "done";

export interface Ending extends Pick<Run, "status" | "stop_reason"> {
  /** The message from the last event that reported the end of the run. */
  readonly message?: string | undefined;
  readonly details?: Run["details"] | undefined;
  readonly usage?: Run["usage"] | undefined;
  /** True if the run ended without an answer. If absent, `usage` decides. */
  readonly isEmpty?: boolean | undefined;
}

/** `isAsking` is true if the run has an open interrupt. */
export function outcomeOf(run: Ending, isAsking: boolean): Outcome {
  switch (run.status) {
    case "pending":
      return "queued";
    case "running":
      return "running";
    case "success":
      if (run.isEmpty ?? saidNothing(run)) return "empty";
      return run.stop_reason === "max_tokens" ? "cut" : "done";
    default:
      return ENDED[kindOfEnd({ status: run.status, stop_reason: run.stop_reason }, isAsking)];
  }
}

/** The outcomes of runs that have ended. A run that waited counts as answered, because its result has arrived since. */
const ENDED = {
  asks: "waits",
  waits: "answered",
  cancelled: "stopped",
  limit: "failed",
  finished: "stopped",
} as const satisfies Record<Exclude<End["as"], "failed">, Outcome>;

const saidNothing = ({ usage, stop_reason }: Ending): boolean =>
  stop_reason !== "refusal" && usage !== undefined && usage.input_tokens > 0 && usage.output_tokens === 0;
