// The icon and the CSS class of each outcome. Because of the icon, colour is not the only sign of the outcome.

import type { Outcome } from "../client/outcome.ts";

export const OUTCOME_MARKS: Readonly<Record<Outcome, readonly [mark: string, tone: string]>> = {
  queued: ["○", ""],
  running: ["●", "now"],
  waits: ["?", "warn"],
  answered: ["✓", ""],
  stopped: ["⊘", ""],
  failed: ["✗", "bad"],
  empty: ["∅", "warn"],
  cut: ["✂", "warn"],
  done: ["✓", "good"],
};

export const OUTCOMES = Object.keys(OUTCOME_MARKS) as Outcome[];

/** The outcomes that a list does not mention. */
export const ENDED_WELL: ReadonlySet<Outcome> = new Set<Outcome>(["done", "answered"]);
