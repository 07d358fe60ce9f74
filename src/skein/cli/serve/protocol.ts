// The messages between the primary process and its workers.

import type { MetricsFormat } from "../../app/siblings.ts";

/** A variable in a worker's environment. The worker removes it, so child processes do not inherit it. */
export const SEAT = "SKEIN_WORKER";

export interface Seat {
  readonly number: number;
  /** The id of the primary. */
  readonly server: string;
  /** The address on which the primary accepts connections. */
  readonly address: string;
}

/** Methods that a worker calls on the primary. */
export interface PrimaryMethods {
  /** Reports that the worker accepts connections. */
  serves(started: true): void;
  /** Reports that the worker no longer accepts connections, except those already being passed to it. */
  leaves(closing: true): void;
  metricsOfOthers(format: MetricsFormat): Promise<readonly string[]>;
  isOneUser(owner: string): boolean;
}

/** Methods that the primary calls on a worker. */
export interface WorkerMethods {
  metrics(format: MetricsFormat): Promise<string>;
}

/** Sent to a worker together with a connection. */
export const CONNECTION = { skein: "connection" };
/** The worker's confirmation of a connection. */
export const TAKEN = { skein: "taken" };

/** Returns true if a message is of the same kind as `other`. */
export const isLike = (message: unknown, other: { readonly skein: string }): boolean =>
  (message as { readonly skein?: unknown } | null)?.skein === other.skein;
