// The options of every store and their defaults. Times are in milliseconds.

import type { WhenBusy } from "../../agent/core/stores.ts";
import { type Logger, SILENT } from "../../lib/logger.ts";

export interface StoreOptions {
  /** The clock, which returns milliseconds since 1970. */
  readonly now?: () => number;
  /** The time without renewal after which another process can take over a run. */
  readonly leaseMs?: number;
  /** The number of times that a run's process can die before the run fails. */
  readonly maxAttempts?: number;
  /**
   * The maximum number of waiting runs per thread. One additional run is accepted if it goes before all waiting runs.
   * Further runs are refused with `queue_full`.
   */
  readonly queueLength?: number;
  /**
   * The maximum number of a tenant's threads with active or waiting runs, checked when a run must wait for a slot.
   * Further runs are refused with `limit_exceeded`.
   */
  readonly tenantQueueLength?: number;
  /** The maximum number of queued messages per run. Further messages are refused with `queue_full`. */
  readonly inboxLength?: number;
  /** The number of entries to keep per run. A reader that needs older entries gets `events_expired`. */
  readonly eventsPerRun?: number;
  /** How long the events of a run can be read after its end. */
  readonly eventRetentionMs?: number;
  /**
   * How long a thread is kept without reads and writes, unless a run is active or waiting. Listing threads does not
   * count as a read.
   */
  readonly threadTtlMs?: number;
  /** How long a thread that waits for a person's answer is kept without reads and writes. */
  readonly interruptedTtlMs?: number;
  /** The interval at which expired data is deleted. Expired data cannot be read even before it is deleted. */
  readonly sweepMs?: number;
  /** Logs errors that have no caller, such as the errors of sweeps. By default, they are not logged. */
  readonly logger?: Logger;
}

export type Limits = Required<StoreOptions>;

/**
 * Returns the maximum number of waiting runs on a thread. A run that interrupts another run has one additional place,
 * so it can always be accepted.
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
