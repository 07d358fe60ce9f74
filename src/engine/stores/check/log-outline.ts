// Outlines a run's log: reads it row by row and keeps a few numbers.

import type { EventName } from "../../../protocol/event.ts";

/** A row of the log, which contains `entries` entries. */
export interface LogRowFacts {
  readonly last: number;
  readonly entries: number;
  readonly epoch: number;
  readonly event: EventName;
}

export interface LogOutline {
  readonly rows: number;
  /** Numbers of the first and the last entry; 0 if there is none. */
  readonly first: number;
  readonly last: number;
  readonly lastEvent: EventName | undefined;
  /** The last entry before the first gap. */
  readonly hole: number | undefined;
  /** The first entry that two rows contain. */
  readonly twice: number | undefined;
  /** The first entry of an epoch after which an older epoch wrote. */
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
