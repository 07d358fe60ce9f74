// What the primary process and its workers say to each other.

import type { MetricsFormat } from "../../app/siblings.ts";

/** A variable of a worker's environment, which nothing that it starts gets. */
export const SEAT = "SKEIN_WORKER";

export interface Seat {
  readonly number: number;
  /** The id of the primary. */
  readonly server: string;
  /** On which the primary accepts connections. */
  readonly address: string;
}

/** What a worker may ask the primary. */
export interface PrimaryMethods {
  /** From now on it takes connections. */
  serves(started: true): void;
  /** It takes no other connection than those on their way. */
  leaves(closing: true): void;
  metricsOfOthers(format: MetricsFormat): Promise<readonly string[]>;
  isOneUser(owner: string): boolean;
}

/** What the primary may ask a worker. */
export interface WorkerMethods {
  metrics(format: MetricsFormat): Promise<string>;
}

/** Sent to a worker with a connection. */
export const CONNECTION = { skein: "connection" };
/** What the worker says once it has it. */
export const TAKEN = { skein: "taken" };

/** Whether a message is of the kind of `other`. */
export const isLike = (message: unknown, other: { readonly skein: string }): boolean =>
  (message as { readonly skein?: unknown } | null)?.skein === other.skein;
