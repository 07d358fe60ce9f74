// The engine with all that sandboxes share on it, found out once.

import type { BackendServices } from "../definition.ts";
import { inWords } from "./converge.ts";
import { deploymentOf } from "./deployment.ts";
import { openDisk } from "./disk.ts";
import { connect } from "./engine.ts";
import { EngineError } from "./engine-info.ts";
import { networks } from "./network.ts";
import type { Host } from "./services.ts";

export interface HostHolder {
  readonly engine: Host["engine"];
  /** Needs no engine. */
  deployment(): Promise<string>;
  /** Asks the engine at the first call, and again after a failure. Throws `unavailable` while it is away. */
  reach(): Promise<Host>;
}

export function hostHolder({ dataDir, docker, sandboxes, logger }: BackendServices): HostHolder {
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
    reach() {
      host ??= openHost().catch((error: unknown) => {
        host = undefined;
        throw error instanceof EngineError ? inWords(error) : error;
      });
      return host;
    },
  };
}
