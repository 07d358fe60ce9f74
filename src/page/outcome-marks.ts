// The mark beside the word for an outcome, so that colour is never all there is; and the tone of both, a class.

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

/** What has ended well is not worth a word in a list. */
export const ENDED_WELL: ReadonlySet<Outcome> = new Set<Outcome>(["done", "answered"]);
