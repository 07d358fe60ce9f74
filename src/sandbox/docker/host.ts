// A Docker engine and the parts that its sandboxes share. They are opened on first use.

import { join } from "node:path";
import type { Connections } from "../../agent/core/connections.ts";
import type { Logger } from "../../lib/logger.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { BackendServices, EngineSettings } from "../definition.ts";
import type { DialOptions } from "../egress/dial.ts";
import type { SandboxLedger } from "../ledger.ts";
import type { SandboxCaps } from "../sandbox-caps.ts";
import { SOLE_ENGINE } from "../sandbox-records.ts";
import { type Disk, openDisk } from "./disk.ts";
import { connect, type DockerClient } from "./engine.ts";
import { toAppError } from "./engine-error.ts";
import { type Networks, networks } from "./network.ts";

/** The parts that all sandboxes of an engine share. */
export interface Host {
  /** The engine's name. */
  readonly name: string;
  readonly engine: DockerClient;
  readonly deployment: string;
  readonly disk: Disk;
  readonly networks: Networks;
  readonly ledger: SandboxLedger;
  readonly caps: SandboxCaps;
  readonly egress: DialOptions;
  readonly connections: Connections | undefined;
  readonly logger: Logger;
}

export interface LazyHost {
  readonly settings: EngineSettings;
  /** Throws `unavailable` if the engine does not answer within `ms` milliseconds. */
  ping(ms: number): Promise<void>;
  /** Connects on the first call, and again after a failure. Throws `unavailable` if the engine is unreachable. */
  getHost(): Promise<Host>;
}

export function lazyHost(
  { dataDir, docker, sandboxes, connections, logger }: BackendServices,
  settings: EngineSettings,
  deploymentOf: () => Promise<string>,
): LazyHost {
  const { name } = settings;
  const engine = connect(settings);
  let host: Promise<Host> | undefined;

  const openHost = async (): Promise<Host> => {
    const deployment = await deploymentOf();
    await engine.ping();
    // Several engines may run on one machine, so the mark keeps their resources apart.
    const mark = name === SOLE_ENGINE ? deployment : `${deployment}/${name}`;
    const folder = name === SOLE_ENGINE ? "volumes" : join("volumes", name);
    const disk = await openDisk(engine, { folder: join(dataDir, folder), deployment, mark, logger });
    logger.info({ deployment, engine: name, disk: disk.kind }, "using the Docker engine for sandboxes");
    return {
      name,
      engine,
      deployment,
      disk,
      networks: networks(engine, { firewall: docker.firewall, deployment, mark, logger }),
      ledger: sandboxes,
      caps: { ...docker.caps, ...omitUndefined({ engine: settings.sandboxes }) },
      egress: docker.egress,
      connections,
      logger,
    };
  };

  return {
    settings,
    async ping(ms) {
      await engine.ping(ms).catch((error: unknown) => {
        throw toAppError(error);
      });
    },
    getHost() {
      host ??= openHost().catch((error: unknown) => {
        host = undefined;
        throw toAppError(error);
      });
      return host;
    },
  };
}
