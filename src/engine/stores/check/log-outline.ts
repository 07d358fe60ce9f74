// Outlines a run's log by reading it row by row and keeping a few numbers.

import type { EventName } from "../../../protocol/event.ts";

/** A row of the log with `entries` entries. */
export interface LogRowFacts {
  readonly last: number;
  readonly entries: number;
  readonly epoch: number;
  readonly event: EventName;
}

export interface LogOutline {
  readonly rows: number;
  /** The numbers of the first and the last entry, or 0 if there are none. */
  readonly first: number;
  readonly last: number;
  readonly lastEvent: EventName | undefined;
  /** The last entry before the first gap. */
  readonly hole: number | undefined;
  /** The first entry that occurs in two rows. */
  readonly twice: number | undefined;
  /** The first entry of an epoch that is followed by entries of an older epoch. */
  readonly olderEpoch: number | undefined;
  readonly epoch: number;
}

export const NO_LOG: LogOutline = {
  rows: 0,
  first: 0,
  last: 0,
  lastEvent: undefined,
  hole: undefined,
  twice: undefined,
  olderEpoch: undefined,
  epoch: 0,
};

/** Returns the outline after appending `row`. */
export function withRow(log: LogOutline, { last, entries, epoch, event }: LogRowFacts): LogOutline {
  const first = last - entries + 1;
  const follows = log.rows === 0 ? first : log.last + 1;
  return {
    rows: log.rows + 1,
    first: log.rows === 0 ? first : log.first,
    last,
    lastEvent: event,
    hole: log.hole ?? (first > follows ? log.last : undefined),
    twice: log.twice ?? (first < follows ? first : undefined),
    olderEpoch: log.olderEpoch ?? (epoch < log.epoch ? first : undefined),
    epoch: Math.max(log.epoch, epoch),
  };
}
