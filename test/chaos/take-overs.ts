// How long runs lay idle when those who worked on them were struck.

import type { Journal, Strike } from "./journal.ts";
import { planIn } from "./plan.ts";
import type { RunOnRecord } from "./records.ts";

/** How long a connection that was cut is felt. */
const CUT_MS = 500;

export interface TakeOver {
  /** `unknown`: it had not asked the model yet. `unexplained`: its process was not hit, but lost the run. */
  readonly by: Strike | "unknown" | "unexplained";
  /**
   * From the moment at which the one who worked on it could write nothing more, to the next event, by another one. Of
   * one that was drained, and of those who were not struck: from the last event.
   */
  readonly ms: number;
  /** Whether there was trouble with the store meanwhile, or its next process was hit too. */
  readonly isDisturbed: boolean;
}

export function takeOversOf({ run, lines, events }: RunOnRecord, journal: Journal): TakeOver[] {
  const plan = planIn(JSON.stringify(events.find(({ event }) => event === "on_message") ?? ""))?.id ?? "";
  const times = events.map((event) => ("ts" in event && event.ts ? Date.parse(event.ts) : undefined));
  const takeOvers: TakeOver[] = [];
  let begun = times[0] ?? 0;
  lines.forEach(({ epoch }, index) => {
    if (epoch === (lines[index - 1]?.epoch ?? epoch)) return;
    const now = times[index] ?? Date.parse(run.ended_at ?? "");
    // Not every event says when it was written.
    const lastWord = times[index - 1] ?? journal.arrivalOf(run.id, index) ?? now;
    const replica = journal.workerOf(plan, begun, now);
    const struck = journal.struck.findLast((each) => each.replica === replica && each.at <= now);
    const from = struck && struck.by !== "drain" ? struck.at : Math.min(lastWord, now);
    const isDisturbed =
      epoch - (lines[index - 1]?.epoch ?? 0) > 1 ||
      journal.outages.some((outage) => outage.from < now && outage.to > from) ||
      journal.cuts.some((at) => at < now && at > from - CUT_MS);
    journal.note(`${run.id} taken over as ${epoch} at ${new Date(now).toISOString()} after ${now - from} ms`);
    takeOvers.push({ by: struck?.by ?? (replica ? "unexplained" : "unknown"), ms: now - from, isDisturbed });
    begun = now;
  });
  return takeOvers;
}
