// `skein serve`: in this process, or in several that share the port.

import { loadServerConfig } from "../../../server/config/load.ts";
import { asWorker } from "./worker.ts";

/** Resolves when the server was asked to stop and has stopped. */
export async function serve(env: NodeJS.ProcessEnv): Promise<number> {
  const worker = asWorker();
  try {
    const config = await loadServerConfig(env);
    // A process that only starts others loads no server.
    if (config.workers > 1 && !worker) return await (await import("./workers.ts")).serveWithWorkers(config);
    return await (await import("./process.ts")).serveHere(config, env, worker);
  } finally {
    worker?.leave();
  }
}
