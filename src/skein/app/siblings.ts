// The other processes of `skein serve --workers N`, as seen by one of them.

import type { SharedMachine } from "../../sandbox/definition.ts";
import type { HttpServer } from "../../server/http/server.ts";

/** The format of a metrics page. */
export type MetricsFormat = "text" | "openMetrics";

export interface Siblings {
  /** The number of this worker, starting at 1. A worker that replaces another one gets the same number. */
  readonly number: number;
  /**
   * A worker uses this instead of listening on a port of its own. Prepares the server for its share of the connections.
   * Resolves with the address that all workers share.
   */
  listen(server: HttpServer): Promise<string>;
  /** Returns the current metrics pages of the other workers. Omits pages that are not ready in time. */
  metricsOfOthers(format: MetricsFormat): Promise<readonly string[]>;
  /** Sets the function that returns this worker's metrics page to the other workers. */
  shareMetrics(read: (format: MetricsFormat) => Promise<string>): void;
  /** For local backends. */
  readonly machine: SharedMachine;
}
