// The outline of a run's log: read row by row, kept as a few numbers.

import type { EventName } from "../../../protocol/event.ts";

/** A row of the log, which holds `entries` of it. */
export interface LogRowFacts {
  readonly last: number;
  readonly entries: number;
  readonly epoch: number;
  readonly event: EventName;
}

export interface LogOutline {
  readonly rows: number;
  /** The number of the first entry and of the last; 0 without any. */
  readonly first: number;
  readonly last: number;
  readonly lastEvent: EventName | undefined;
  /** The last entry before the first hole. */
  readonly hole: number | undefined;
  /** The first entry that stands in two rows. */
  readonly twice: number | undefined;
  /** The first entry of an epoch after which an older one wrote. */
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

/** The outline once `row` is behind what it has. */
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
