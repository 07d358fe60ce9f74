// Options of every store and their defaults. Times are in milliseconds.

import type { WhenBusy } from "../../agent/core/stores.ts";
import { type Logger, SILENT } from "../../lib/logger.ts";

export interface StoreOptions {
  /** The clock: milliseconds since 1970. */
  readonly now?: () => number;
  /** A run whose lease was not renewed for this long may be taken over. */
  readonly leaseMs?: number;
  /** A run whose process died in this many attempts has failed. */
  readonly maxAttempts?: number;
  /** Runs that may wait for a thread, and one that goes before them all; one more is refused with `queue_full`. */
  readonly queueLength?: number;
  /**
   * Threads of one tenant on which runs may be active or wait, counted when a run must wait for room; one more is
   * refused with `limit_exceeded`.
   */
  readonly tenantQueueLength?: number;
  /** Messages that may wait for a run; one more is refused with `queue_full`. */
  readonly inboxLength?: number;
  /** Entries kept of one run. Older ones go; a reader that still needs them gets `events_expired`. */
  readonly eventsPerRun?: number;
  /** How long the events of a run can be read after its end. */
  readonly eventRetentionMs?: number;
  /** A thread not read or written for this long is deleted, unless a run is active or waits. A list of threads reads none. */
  readonly threadTtlMs?: number;
  /** The same for a thread that waits for a person's answer. */
  readonly interruptedTtlMs?: number;
  /** Time between two deletions of expired data. Expired data can no longer be read, also before it is deleted. */
  readonly sweepMs?: number;
  /** Gets the errors that no caller gets, such as those of sweeps. Default: none does. */
  readonly logger?: Logger;
}

export type Limits = Required<StoreOptions>;

/** How many runs may wait for a thread. A run that interrupts has one place more, so that it is always possible. */
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
