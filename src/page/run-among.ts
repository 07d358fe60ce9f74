// Finds the run that was active at a time. Independent of the DOM.

import type { Run } from "../client/client.ts";

export type Times = Pick<Run, "created_at" | "ended_at">;

/**
 * The tolerance in ms between two clocks: messages have the time of the executing process, and runs have the time of
 * the store.
 */
const APART_MS = 2_000;

/**
 * The runs of a thread execute one after another. The run that was active at a time is therefore the first to end among
 * all runs that existed then.
 */
export function runAmong<R extends Times>(runs: readonly R[], at: number): R | undefined {
  const then = runs.filter(
    (run) => Date.parse(run.created_at) - APART_MS <= at && at <= endOf(run) + APART_MS,
  );
  const exact = then.filter((run) => Date.parse(run.created_at) <= at && at <= endOf(run));
  return (exact.length > 0 ? exact : then).toSorted((a, b) => endOf(a) - endOf(b))[0];
}

const endOf = ({ ended_at }: Times): number => (ended_at ? Date.parse(ended_at) : Number.POSITIVE_INFINITY);
