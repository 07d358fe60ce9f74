// How a run ended, as a person would say it: a pure rule that every list, head and announcement shares.

import { type End, kindOfEnd } from "../protocol/end.ts";
import type { Run } from "./wire.ts";

/**
 * `waits`: something that it asked is open. `answered`: it asked, and another run continued. `stopped`: by a person, at once
 * or after a step. `empty`: the model said nothing. `cut`: the answer ends at the limit of its tokens.
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
  /** What its last event says of its end. */
  readonly message?: string | undefined;
  readonly details?: Run["details"] | undefined;
  readonly usage?: Run["usage"] | undefined;
  /** Whether the run ended without an answer. Absent: as its usage says. */
  readonly isEmpty?: boolean | undefined;
}

/** `isAsking`: whether an interrupt of the run is open. */
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

/** The outcome of a run that has ended. A run that waited counts as answered, because its result has come since. */
const ENDED = {
  asks: "waits",
  waits: "answered",
  cancelled: "stopped",
  limit: "failed",
  finished: "stopped",
} as const satisfies Record<Exclude<End["as"], "failed">, Outcome>;

const saidNothing = ({ usage, stop_reason }: Ending): boolean =>
  stop_reason !== "refusal" && usage !== undefined && usage.input_tokens > 0 && usage.output_tokens === 0;
