// `skein serve`: serves in this process, or in several processes that share the port.

import { loadServerConfig } from "../../../server/config/load.ts";
import { asWorker } from "./worker.ts";

/** Returns after a signal has stopped the server. */
export async function serve(env: NodeJS.ProcessEnv): Promise<number> {
  const worker = asWorker();
  try {
    const config = await loadServerConfig(env);
    // The primary process only starts workers, so it does not load the server.
    if (config.workers > 1 && !worker) return await (await import("./workers.ts")).serveWithWorkers(config);
    return await (await import("./process.ts")).serveHere(config, env, worker);
  } finally {
    worker?.leave();
  }
}
