// The pool of backends as the server makes it, with defaults for the rest.

import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { createLedger } from "../../src/sandbox/ledger.ts";
import { createBackendPool, type PoolOptions } from "../../src/sandbox/pool.ts";
import { SOLE_ENGINE } from "../../src/sandbox/sandbox-records.ts";

/** Closed by the caller. */
export function newPool(options: Pick<PoolOptions, "dataDir"> & Partial<PoolOptions>) {
  return createBackendPool({
    allowSeveralUsers: false,
    docker: {
      ...{ engines: [{ name: SOLE_ENGINE }], deployment: undefined, firewall: "managed", isShared: false },
      egress: {},
      ...{ caps: { total: 100, tenant: 100 }, sweepMs: 20_000 },
    },
    sandboxes: createLedger(createMemoryStores().documents),
    logger: SILENT,
    onStatus() {},
    ...options,
  });
}

const SILENT = { info() {}, warn() {}, error() {} };
