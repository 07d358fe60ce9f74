// Keeps all data in one SQLite file, for one process, with quotas in `usage.db` next to it. Changes survive a crash of
// the process and of the machine. Only events that nothing relies on (deltas, progress, spans of model calls) are
// written to disk later, with the next event of another kind.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { AllStores } from "../all-stores.ts";
import { createDeferredCalls } from "../deferred-calls.ts";
import { createItems } from "../items.ts";
import { LocalBus } from "../local-bus.ts";
import { DEFAULTS, type StoreOptions } from "../options.ts";
import { createOwners } from "../owners.ts";
import { createRuns } from "../runs.ts";
import { Deadlines } from "../shared/outages.ts";
import { SQLITE } from "../sql/dialect.ts";
import { sqlOwners } from "../sql/owners.ts";
import { createThreads } from "../threads.ts";
import { createContext, type StoreContext } from "./context.ts";
import { Database } from "./database.ts";
import { sqliteDocuments } from "./documents.ts";
import { executorOf, tickExecutor } from "./executor.ts";
import { sqliteKernel } from "./kernel.ts";
import { patient } from "./patience.ts";
import { type OpenQuotas, openSqliteQuotas, usageIn } from "./quotas.ts";
import { checkHeader } from "./schema.ts";

/** The path of the file, or of the folder that contains it as `skein.db`. A missing file or folder is created. */
export type SqliteLocation = { readonly path: string } | { readonly dataDir: string };

/** Threads are kept until they are deleted, unless `threadTtlMs` is set. Events are kept for a day. */
const KEPT = { threadTtlMs: Number.POSITIVE_INFINITY, eventRetentionMs: 24 * 3_600_000 };

/** Throws `unavailable` if the file is in use by another process, or cannot be used. */
export function createSqliteStores(options: SqliteLocation & StoreOptions): AllStores {
  const path = "path" in options ? options.path : join(options.dataDir, "skein.db");
  const limits = { ...DEFAULTS, ...KEPT, ...options };
  const opened: { close(): void }[] = [];
  try {
    // No new file is created in a folder with another format.
    if (!existsSync(path)) checkHeader(usageIn(dirname(path)));
    const database = new Database(path, limits.logger);
    opened.push(database);
    const quotas = openSqliteQuotas(dirname(path), limits.now, limits.logger);
    opened.push(quotas);
    return database.read(() => assemble(createContext(database, limits), quotas));
  } catch (error) {
    for (const file of opened) file.close();
    throw error;
  }
}

function assemble(context: StoreContext, { quotas, close: closeQuotas }: OpenQuotas): AllStores {
  const { database, limits, live, queue, writer, retention } = context;
  const kernel = sqliteKernel(context);
  const bus = new LocalBus();
  const documents = sqliteDocuments(database, limits.now, retention);
  const deadlines = new Deadlines(0, limits.leaseMs);
  const stores = {
    threads: patient(createThreads(kernel, bus), deadlines),
    runs: patient(createRuns(kernel), deadlines),
    events: kernel.events,
    documents: patient(documents, deadlines),
    deferredCalls: patient(createDeferredCalls(kernel), deadlines),
    items: patient(createItems(documents), deadlines),
    owners: createOwners(sqlOwners(SQLITE, executorOf(tickExecutor(database), limits.now))),
    quotas: patient(quotas, deadlines),
    bus,
    isDurable: true,
  };
  retention.start();
  return {
    ...stores,
    copyTo: (path) => database.copyTo(path),
    inRun: (work) => deadlines.inRun(work),
    async ping() {
      database.proveWrite();
    },
    async close() {
      retention.stop();
      bus.close();
      await writer.close();
      // Callers whose changes are committed get their results.
      await database.flushed().catch(() => {});
      live.close();
      queue.close();
      closeQuotas();
      await database.endCheckpoints();
      database.close();
    },
  };
}
