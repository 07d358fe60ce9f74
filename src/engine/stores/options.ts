// Options of every store and their defaults. Times are in milliseconds.

import type { WhenBusy } from "../../agent/core/stores.ts";
import { type Logger, SILENT } from "../../lib/logger.ts";

export interface StoreOptions {
  /** Clock: milliseconds since 1970. */
  readonly now?: () => number;
  /** Time without renewal after which a run may be taken over. */
  readonly leaseMs?: number;
  /** Number of attempts with a dead process after which a run fails. */
  readonly maxAttempts?: number;
  /** Maximum number of waiting runs per thread, plus one that precedes them all. Further runs are refused with `queue_full`. */
  readonly queueLength?: number;
  /**
   * Maximum number of a tenant's threads with active or waiting runs, checked when a run must wait for a slot. Further
   * runs are refused with `limit_exceeded`.
   */
  readonly tenantQueueLength?: number;
  /** Maximum number of queued messages per run. Further messages are refused with `queue_full`. */
  readonly inboxLength?: number;
  /** Number of entries to keep per run. A reader that needs older ones gets `events_expired`. */
  readonly eventsPerRun?: number;
  /** Time for which the events of a run stay readable after its end. */
  readonly eventRetentionMs?: number;
  /**
   * Time without reads and writes after which a thread is deleted, unless a run is active or waiting. Listing threads
   * does not count as a read.
   */
  readonly threadTtlMs?: number;
  /** The same for a thread that waits for a person's answer. */
  readonly interruptedTtlMs?: number;
  /** Interval between two deletions of expired data. Expired data cannot be read even before it is deleted. */
  readonly sweepMs?: number;
  /** Receives errors that have no caller, such as those of sweeps. Defaults to none. */
  readonly logger?: Logger;
}

export type Limits = Required<StoreOptions>;

/**
 * Returns the maximum number of waiting runs on a thread. A run that interrupts has one more place, so that it is
 * always possible.
 */
export const queueRoom = (queueLength: number, whenBusy: WhenBusy): number =>
  whenBusy === "front" ? queueLength + 1 : queueLength;

const HOUR = 3_600_000;

export const DEFAULTS: Limits = {
  now: () => Date.now(),
  leaseMs: 10_000,
  maxAttempts: 5,
  queueLength: 16,
  tenantQueueLength: 1000,
  inboxLength: 16,
  eventsPerRun: 20_000,
  eventRetentionMs: HOUR,
  threadTtlMs: HOUR,
  interruptedTtlMs: 24 * HOUR,
  sweepMs: 300_000,
  logger: SILENT,
};
