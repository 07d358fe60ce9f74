// The backends in the settings.

import type { FastifyBaseLogger } from "fastify";
import type { BackendStatus } from "../../agent/core/backend.ts";
import type { Connections } from "../../agent/core/connections.ts";
import type { AllStores } from "../../engine/stores/all-stores.ts";
import { hostList } from "../../lib/hosts.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import { createLedger } from "../../sandbox/ledger.ts";
import { createBackendPool } from "../../sandbox/pool.ts";
import { SOLE_ENGINE } from "../../sandbox/sandbox-records.ts";
import type { ServerConfig } from "../../server/config/server.ts";
import type { LoadedPlugin } from "../../server/plugins/load.ts";
import type { Siblings } from "./siblings.ts";

interface SeenBackends {
  readonly plugins: readonly LoadedPlugin[];
  readonly onStatus?: ((owner: Owner, status: BackendStatus) => void) | undefined;
  readonly siblings?: Siblings | undefined;
  readonly connections: Connections | undefined;
}

/** Opens the backends. The caller closes them. */
export function openBackends(
  config: ServerConfig,
  { documents, bus, shared }: AllStores,
  logger: FastifyBaseLogger,
  { plugins, onStatus, siblings, connections }: SeenBackends,
) {
  const { allow_local, docker } = config.backends;
  return createBackendPool({
    dataDir: config.data_dir,
    allowSeveralUsers: allow_local,
    ...(siblings ? { machine: siblings.machine } : {}),
    sandboxes: createLedger(documents),
    connections,
    logger,
    own: Object.assign({}, ...plugins.map(({ plugin }) => plugin.backends)),
    docker: {
      engines: docker.engines ?? [{ name: SOLE_ENGINE, host: docker.host }],
      firewall: docker.firewall,
      egress: { allow: hostList(docker.private_hosts) },
      isShared: shared !== undefined,
      deployment: docker.deployment ?? shared?.deployment,
      caps: {
        total: docker.sandboxes,
        tenant: docker.sandboxes_per_tenant ?? halfOf(config),
        ...omitUndefined({ tenantDisk: docker.disk_per_tenant }),
      },
      sweepMs: docker.sweep,
    },
    onStatus(owner, data) {
      bus.publish(owner, { event: "backend_status", data });
      onStatus?.(owner, data);
    },
  });
}

/** Returns the names of all configured engines, including unused ones. */
export const enginesOf = ({ backends: { docker } }: ServerConfig) =>
  docker.engines?.map(({ name }) => name) ?? [SOLE_ENGINE];

/** Returns half of the sandboxes, but at least one, if there may be several tenants. Otherwise, returns all of them. */
function halfOf({ auth, backends: { docker } }: ServerConfig): number {
  return auth.scheme === "none" ? docker.sandboxes : Math.max(1, Math.floor(docker.sandboxes / 2));
}
