// The backends of a program's agents: its own `Backend` objects, and a pool for configured backends.

import type { Backend, BackendPool, BackendStatus } from "../../agent/core/backend.ts";
import type { AllStores } from "../../engine/stores/all-stores.ts";
import type { Logger } from "../../lib/logger.ts";
import { createLedger } from "../../sandbox/ledger.ts";
import { createBackendPool } from "../../sandbox/pool.ts";
import { SOLE_ENGINE } from "../../sandbox/sandbox-records.ts";

/** The type of a backend that the program passes as an object. */
export const OWN_BACKEND = "own";

/** `own` returns an agent's `Backend` by name. All other requests go to `pool`. */
export function withOwnBackends(own: (name: string) => Backend | undefined, pool: BackendPool): BackendPool {
  const ownOf = ({ type, name }: { type: string; name?: string }) =>
    type === OWN_BACKEND && name !== undefined ? own(name) : undefined;
  const statusOf = (name: string | undefined, { type, workdir }: Backend): BackendStatus => ({
    name: name ?? "default",
    type,
    workdir,
    status: "running",
  });
  const orOwn =
    (method: "status" | "start" | "stop"): BackendPool["status"] =>
    async (owner, config) => {
      const backend = ownOf(config);
      return backend ? statusOf(config.name, backend) : pool[method](owner, config);
    };
  return {
    get: async (owner, config) => ownOf(config) ?? pool.get(owner, config),
    status: orOwn("status"),
    start: orOwn("start"),
    stop: orOwn("stop"),
    erase: (owner) => pool.erase(owner),
    ping: () => pool.ping(),
    close: () => pool.close(),
  };
}

/** Opens nothing before the first use. The caller closes the pool. */
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
    dataDir: dir,
    allowSeveralUsers: false,
    sandboxes: createLedger(stores.documents),
    logger,
    docker: {
      engines: [{ name: SOLE_ENGINE }],
      firewall: "managed",
      egress: {},
      isShared: stores.shared !== undefined,
      deployment: stores.shared?.deployment,
      caps: { total: 100, tenant: 100 },
      sweepMs: 20_000,
    },
    onStatus: (owner, data) => stores.bus.publish(owner, { event: "backend_status", data }),
  });
}
