// What a runtime has that was told nothing: a logger, and a pool of the backends that agents describe.

import { createBackendPool } from "../backends/pool.ts";
import type { BackendPool } from "../core/backend.ts";
import type { Logger } from "../lib/logger.ts";
import type { AllStores } from "../stores/all-stores.ts";

export const TO_CONSOLE: Logger = {
  info() {},
  warn: (details, message) => console.warn(message, details),
  error: (details, message) => console.error(message, details),
};

/** Connects to nobody and makes nothing before it is asked. Whoever calls it closes it. */
export function openPool({
  dir,
  stores,
  logger,
}: {
  dir: string;
  stores: AllStores;
  logger: Logger;
}): BackendPool {
  return createBackendPool({
    ...{ dataDir: dir, allowSeveralUsers: false, sandboxes: stores.sandboxes, logger },
    docker: {
      ...{ host: undefined, firewall: "managed", isShared: stores.shared !== undefined },
      deployment: stores.shared?.deployment,
      caps: { total: 100, tenant: 100 },
      sweepMs: 20_000,
    },
    onStatus: (owner, data) => stores.bus.publish(owner, { event: "backend_status", data }),
  });
}
