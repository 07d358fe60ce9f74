// Reads the earlier attempts of a run from its log, for a process that takes over or ends the run.

import { loggedWords, type PartialMessage, trackPartial } from "../../agent/core/incomplete-message.ts";
import { addUsage, NO_USAGE, type Usage } from "../../agent/core/message.ts";
import { storedEvent } from "../../agent/core/stored-json.ts";
import type { EventLog, Lease } from "../../agent/core/stores.ts";
import type { EventName } from "../../protocol/event.ts";
import { type InnerSpan, innerSpans } from "../../protocol/open-spans.ts";
import { readSpans, SPAN_EVENTS, type SpanEnd } from "../../protocol/span-reader.ts";

/** The earlier attempts of a run, according to its log. */
export interface PreviousAttempt {
  /** The spans left open, in order. */
  readonly open: readonly InnerSpan[];
  /** Every tool call that was started, whether or not it ended. Only a result in the thread shows what the call did. */
  readonly begun: readonly string[];
  /** The usage so far, from the run's model calls and its ended subagents. */
  readonly usage: Usage;
  /** The number of model calls that the run itself has started. Exact only if `isWhole` is true. */
  readonly modelCalls: number;
  /** False if the beginning of the log was dropped, in which case more calls may have started. */
  readonly isWhole: boolean;
  /** The message that the last model call was writing. */
  readonly partial: PartialMessage;
}

export const firstAttempt = (): PreviousAttempt => ({
  open: [],
  begun: [],
  usage: NO_USAGE,
  modelCalls: 0,
  isWhole: true,
  partial: trackPartial(),
});

const RELEVANT: ReadonlySet<EventName> = new Set(SPAN_EVENTS);

/** Reads the current log. Only the run's writer may call this, and only while the writer has no write in progress. */
export async function previousAttempt(log: EventLog, lease: Lease): Promise<PreviousAttempt> {
  const { first, last } = await log.bounds(lease);
  const words = loggedWords();
  const all = readSpans({});
  const own = ownTally();
  const read = last === 0 ? [] : log.read(lease, first - 1, new AbortController().signal);
  for await (const batch of read) {
    for (const entry of batch) {
      words.add(entry);
      if (!RELEVANT.has(entry.event)) continue;
      const event = storedEvent(entry);
      all.see(event);
      if (!event.path) own.see(event);
    }
    if (batch.some(({ seq }) => seq === last)) break;
  }
  return {
    open: innerSpans(all.open()),
    ...own.tally(),
    isWhole: first <= 1,
    partial: words.partial(),
  };
}

/**
 * Counts the run's own calls. A subagent's usage is counted when the subagent ends, because the events of an unfinished
 * subagent are read again from its start.
 */
function ownTally() {
  const begun: string[] = [];
  let usage = NO_USAGE;
  let modelCalls = 0;
  const used = ({ data }: SpanEnd<"model" | "subagent">) => {
    usage = addUsage(usage, data.usage ?? NO_USAGE);
  };
  const { see } = readSpans({
    model: { opened: () => ++modelCalls, closed: used },
    tool: { opened: ({ id }) => begun.push(id) },
    subagent: { closed: used },
  });
  return { see, tally: () => ({ begun, usage, modelCalls }) };
}
