// What the primary process and its workers say to each other.

import type { MetricsFormat } from "../../app/siblings.ts";

/** A variable of a worker's environment, which nothing that it starts gets. */
export const SEAT = "SKEIN_WORKER";

export interface Seat {
  readonly number: number;
  /** The id of the primary. */
  readonly server: string;
}

/** What a worker may ask the primary. */
export interface PrimaryMethods {
  /** It is about to listen. */
  begins(started: true): void;
  listens(address: string): void;
  metricsOfOthers(format: MetricsFormat): Promise<readonly string[]>;
  isOneUser(owner: string): boolean;
}

/** What the primary may ask a worker. */
export interface WorkerMethods {
  metrics(format: MetricsFormat): Promise<string>;
}
