// A process that serves: the only one of a server, or one of its workers.

import { createApp } from "../../../app.ts";
import { settingsDoubts } from "../../../server/config/load.ts";
import type { ServerConfig } from "../../../server/config/server.ts";
import { hasImported } from "../../../server/plugins/import.ts";
import { createLogger } from "../../app/logger.ts";
import { HANGS_AFTER, stopRequest } from "../signals.ts";
import { bannerOf, closingNotice } from "./banner.ts";
import type { Worker } from "./worker.ts";

/** Resolves when the process was asked to stop and has stopped. */
export async function serveHere(
  config: ServerConfig,
  env: NodeJS.ProcessEnv,
  worker: Worker | undefined,
): Promise<number> {
  const own = createLogger(config);
  const logger = worker ? own.child({ worker: worker.number }) : own;
  process.on("unhandledRejection", (err) => {
    // Without plugins it is a fault of Skein's own, after which nothing is certain.
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
  // In a terminal, SIGHUP means that the terminal was closed.
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
  // A second signal ends the process at once. A worker gets Ctrl-C from the terminal and from the primary, which decides.
  stop.onSecond = () => worker || process.exit(1);
  // A shutdown that hangs ends, too.
  setTimeout(() => process.exit(1), config.shutdown.grace + HANGS_AFTER).unref();
  await app.close();
  return 0;
}
