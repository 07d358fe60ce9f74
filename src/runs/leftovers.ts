// What a run has left open, read back from its own log.

import type { EventName, StreamEvent } from "../core/event.ts";
import { BRACKETS, type Opening, stillOpen } from "../core/grammar.ts";
import { addUsage, NO_USAGE, type Usage } from "../core/message.ts";
import type { EventLog, Lease } from "../core/stores.ts";

export interface Leftovers {
  /** The starts whose end is not in the log, in order. */
  readonly openings: readonly Opening[];
  /** Every tool call that has begun, ended or not: what it did is known only by its result in the thread. */
  readonly begun: readonly string[];
  /** What its model calls have used so far, and those of its subagents. */
  readonly usage: Usage;
  /** False when the log no longer goes back to the run's beginning: more may be open. */
  readonly isWhole: boolean;
}

/** Of a run that has not begun. */
export const NOTHING: Leftovers = { openings: [], begun: [], usage: NO_USAGE, isWhole: true };

const OF_INTEREST: ReadonlySet<EventName> = new Set(BRACKETS);

/** Reads what is in the log now. To be called by the run's writer, while it writes nothing. */
export async function leftovers(log: EventLog, lease: Lease): Promise<Leftovers> {
  const { first, last } = await log.bounds(lease);
  const events: StreamEvent[] = [];
  const read = last === 0 ? [] : log.read(lease, first - 1, new AbortController().signal);
  for await (const batch of read) {
    // The log holds what `append` was given, and nothing else.
    for (const { event, json } of batch)
      if (OF_INTEREST.has(event)) events.push(JSON.parse(json) as StreamEvent);
    if (batch.some(({ seq }) => seq === last)) break;
  }
  const own = events.filter((event) => !event.path);
  const begun = own.flatMap((event) => (event.event === "on_tool_start" ? [event.data.call_id] : []));
  const usage = own.map(usedIn).reduce(addUsage, NO_USAGE);
  return { openings: stillOpen(events), begun, usage, isWhole: first <= 1 };
}

/** What a subagent uses counts when it is told to have ended: whoever goes on follows the others from their beginning. */
function usedIn(event: StreamEvent): Usage {
  const tells = event.event === "on_chat_model_end" || event.event === "on_subagent_end";
  return (tells ? event.data.usage : undefined) ?? NO_USAGE;
}
