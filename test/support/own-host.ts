// Workers of vitest that run on a host of their own, where tests have engines of their own: what a test listens on,
// what it does to the firewall and which networks its engine makes affects no one else on the machine.

import { fileURLToPath } from "node:url";
import { ForksPoolWorker, type PoolRunnerInitializer } from "vitest/node";

const SCRIPT = fileURLToPath(new URL("../../script/test-engine", import.meta.url));

export const ownHosts: PoolRunnerInitializer = {
  name: "own-hosts",
  createPoolWorker(options) {
    const { engine } = options.project.getProvidedContext();
    if (engine.kind !== "own") return new ForksPoolWorker(options);
    return new OwnHostWorker({
      ...options,
      execArgv: [SCRIPT, "host", process.execPath, ...options.execArgv],
    });
  },
};

class OwnHostWorker extends ForksPoolWorker {
  /** A fork runs `process.execPath`, and there is no other way to have it run something else: the shell, then Node. */
  override start(): Promise<void> {
    const { execPath } = process;
    process.execPath = "/bin/sh";
    try {
      return super.start();
    } finally {
      process.execPath = execPath;
    }
  }
}
