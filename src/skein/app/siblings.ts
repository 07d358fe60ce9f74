// The other processes of `skein serve --workers N`, as one of them sees them.

import type { SharedMachine } from "../../sandbox/definition.ts";
import type { HttpServer } from "../../server/http/server.ts";

/** Of a page of metrics. */
export type MetricsFormat = "text" | "openMetrics";

export interface Siblings {
  /** From 1. A worker that replaces one that ended has the same number. */
  readonly number: number;
  /** In place of an own port: makes the server ready for its part of the connections. Resolves with the address of all. */
  listen(server: HttpServer): Promise<string>;
  /** What the metrics of the others are now. Leaves out those that do not answer in time. */
  metricsOfOthers(format: MetricsFormat): Promise<readonly string[]>;
  /** What the others get when they ask. */
  shareMetrics(read: (format: MetricsFormat) => Promise<string>): void;
  /** For local backends. */
  readonly machine: SharedMachine;
}
