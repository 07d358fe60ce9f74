// A process that serves requests, either as the only process of a server or as one of its workers.

import { createApp } from "../../../app.ts";
import { settingsDoubts } from "../../../server/config/load.ts";
import type { ServerConfig } from "../../../server/config/server.ts";
import { hasImported } from "../../../server/plugins/import.ts";
import { createLogger } from "../../app/logger.ts";
import { HANGS_AFTER, stopRequest } from "../signals.ts";
import { bannerOf, closingNotice } from "./banner.ts";
import type { Worker } from "./worker.ts";

/** Returns after a signal has stopped the process. */
export async function serveHere(
  config: ServerConfig,
  env: NodeJS.ProcessEnv,
  worker: Worker | undefined,
): Promise<number> {
  const own = createLogger(config);
  const logger = worker ? own.child({ worker: worker.number }) : own;
  process.on("unhandledRejection", (err) => {
    // If no plugin was imported, the rejection is a bug in Skein, and the state is uncertain.
    if (!hasImported()) throw err;
    logger.error({ err }, "a promise was rejected and nothing handled it; a plugin should await or catch it");
  });
  for (const doubt of await settingsDoubts(env)) logger.warn(doubt);
  const app = await createApp({
    config,
    env,
    logger,
    ...(worker ? { siblings: worker } : {}),
  });
  const stop = stopRequest();
  // At a terminal, SIGHUP means that the terminal was closed.
  if (!process.stdout.isTTY) process.on("SIGHUP", () => void app.reload());
  const address = await app.listen().catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  if (worker) await worker.serves();
  else process.stdout.write(bannerOf(config, address, app.defaultModel()));
  const name = await stop.first;
  logger.info({ signal: name }, "shutting down");
  if (!worker) process.stdout.write(closingNotice(name));
  // A second signal ends the process at once. A worker ignores it, because Ctrl-C reaches the worker and the primary,
  // and the primary decides.
  stop.onSecond = () => worker || process.exit(1);
  // Also ends a shutdown that hangs.
  setTimeout(() => process.exit(1), config.shutdown.grace + HANGS_AFTER).unref();
  await app.close();
  return 0;
}
