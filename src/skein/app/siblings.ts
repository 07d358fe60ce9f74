// The other processes of `skein serve --workers N`, as one of them sees them.

import type { SharedMachine } from "../../sandbox/definition.ts";
import type { HttpServer } from "../../server/http/server.ts";

/** Format of a metrics page. */
export type MetricsFormat = "text" | "openMetrics";

export interface Siblings {
  /** Number of this worker, from 1. A worker that replaces another one has the same number. */
  readonly number: number;
  /**
   * Replaces a port of the worker's own: prepares the server for its share of the connections. Resolves with the address
   * of all workers.
   */
  listen(server: HttpServer): Promise<string>;
  /** Returns the current metrics pages of the others, without the pages that are not ready in time. */
  metricsOfOthers(format: MetricsFormat): Promise<readonly string[]>;
  /** Sets the function that returns this worker's metrics page to the others. */
  shareMetrics(read: (format: MetricsFormat) => Promise<string>): void;
  /** For local backends. */
  readonly machine: SharedMachine;
}
