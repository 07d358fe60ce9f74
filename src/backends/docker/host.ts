// The Docker engine with everything that its sandboxes share, opened on first use.

import type { Logger } from "../../lib/logger.ts";
import type { BackendServices } from "../definition.ts";
import type { SandboxCaps, SandboxLedger } from "../ledger.ts";
import { type Disk, openDisk } from "./disk.ts";
import { connect, type DockerClient, toAppError } from "./engine.ts";
import { deploymentOf } from "./identity.ts";
import { type Networks, networks } from "./network.ts";

/** The parts that all sandboxes of one engine share. */
export interface Host {
  readonly engine: DockerClient;
  readonly deployment: string;
  readonly disk: Disk;
  readonly networks: Networks;
  readonly ledger: SandboxLedger;
  readonly caps: SandboxCaps;
  readonly logger: Logger;
}

export interface LazyHost {
  readonly engine: Host["engine"];
  /** The name of this deployment. Needs no engine. */
  deployment(): Promise<string>;
  /** Connects at the first call, and again after a failure. Throws `unavailable` while the engine is unreachable. */
  getHost(): Promise<Host>;
}

export function lazyHost({ dataDir, docker, sandboxes, logger }: BackendServices): LazyHost {
  const engine = connect(docker.host);
  let deployment: Promise<string> | undefined;
  let host: Promise<Host> | undefined;

  const nameOf = () => {
    deployment ??=
      docker.deployment === undefined ? deploymentOf(dataDir) : Promise.resolve(docker.deployment);
    return deployment.catch((error: unknown) => {
      deployment = undefined;
      throw error;
    });
  };
  const openHost = async (): Promise<Host> => {
    const name = await nameOf();
    await engine.ping();
    const disk = await openDisk(engine, { dataDir, deployment: name, logger });
    logger.info({ deployment: name, disk: disk.kind }, "using the Docker engine for sandboxes");
    return {
      engine,
      deployment: name,
      disk,
      networks: networks(engine, { firewall: docker.firewall, deployment: name, logger }),
      ledger: sandboxes,
      caps: docker.caps,
      logger,
    };
  };

  return {
    engine,
    deployment: nameOf,
    getHost() {
      host ??= openHost().catch((error: unknown) => {
        host = undefined;
        throw toAppError(error);
      });
      return host;
    },
  };
}
