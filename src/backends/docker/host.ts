// The engine with all that sandboxes share on it, found out once.

import type { Logger } from "../../lib/logger.ts";
import type { BackendServices } from "../definition.ts";
import type { SandboxCaps, SandboxLedger } from "../ledger.ts";
import { type Disk, openDisk } from "./disk.ts";
import { connect, type DockerClient, EngineError, toAppError } from "./engine.ts";
import { deploymentOf } from "./identity.ts";
import { type Networks, networks } from "./network.ts";

export interface LazyHost {
  readonly engine: Host["engine"];
  /** Needs no engine. */
  deployment(): Promise<string>;
  /** Asks the engine at the first call, and again after a failure. Throws `unavailable` while it is away. */
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
    const both = { deployment: name, logger };
    const disk = await openDisk(engine, { dataDir, ...both });
    logger.info({ deployment: name, disk: disk.kind }, "using the Docker engine for sandboxes");
    return {
      ...{ engine, disk, networks: networks(engine, { firewall: docker.firewall, ...both }) },
      ...{ ledger: sandboxes, caps: docker.caps, ...both },
    };
  };

  return {
    engine,
    deployment: nameOf,
    getHost() {
      host ??= openHost().catch((error: unknown) => {
        host = undefined;
        throw error instanceof EngineError ? toAppError(error) : error;
      });
      return host;
    },
  };
}

// What all sandboxes of one engine have in common.

export interface Host {
  readonly engine: DockerClient;
  readonly deployment: string;
  readonly disk: Disk;
  readonly networks: Networks;
  readonly ledger: SandboxLedger;
  readonly caps: SandboxCaps;
  readonly logger: Logger;
}
