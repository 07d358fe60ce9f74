// The other processes of `skein serve --workers N`, as one of them sees them.

import type { SharedMachine } from "../backends/definition.ts";

/** Of a page of metrics. */
export type MetricsFormat = "text" | "openMetrics";

export interface Siblings {
  /** From 1. A worker that replaces one that ended has the same number. */
  readonly number: number;
  /** What the metrics of the others are now. Leaves out those that do not answer in time. */
  metricsOfOthers(format: MetricsFormat): Promise<readonly string[]>;
  /** What the others get when they ask. */
  shareMetrics(read: (format: MetricsFormat) => Promise<string>): void;
  /** For local backends. */
  readonly machine: SharedMachine;
}
