// Keeps the events of a run for the page, up to a limit, and counts all of them. Uses no DOM.

import type { StreamEvent } from "../client/client.ts";

/** The maximum number of events to keep. Later events are only counted. */
export const MOST_EVENTS = 20_000;

export interface EventEntry {
  readonly id: string;
  readonly event: StreamEvent;
}

export interface EventLog {
  readonly seen: EventEntry[];
  /** By the name of the event. */
  readonly counts: Map<string, number>;
  total: number;
  state: "reading" | "ended";
  /** True if earlier events have expired. */
  isCut: boolean;
  problem?: string;
}

export const newEventLog = (): EventLog => ({
  seen: [],
  counts: new Map(),
  total: 0,
  state: "reading",
  isCut: false,
});

export function logEvent(log: EventLog, entry: EventEntry): void {
  const { event: name } = entry.event;
  log.total++;
  log.counts.set(name, (log.counts.get(name) ?? 0) + 1);
  if (log.seen.length < MOST_EVENTS) log.seen.push(entry);
}
