// Keeps all data in one PostgreSQL database, for any number of processes. When a method resolves, its changes are on
// disk and visible to all processes. If PostgreSQL crashes, only the most recent changes of quota counters may be lost.

import type { Documents } from "../../../agent/core/documents.ts";
import { randomId } from "../../../lib/random-id.ts";
import type { AllStores } from "../all-stores.ts";
import { createDeferredCalls } from "../deferred-calls.ts";
import { createItems } from "../items.ts";
import { DEFAULTS, type StoreOptions } from "../options.ts";
import { createOwners } from "../owners.ts";
import { createRuns } from "../runs.ts";
import { createReplays } from "../shared/event-pages.ts";
import { Writer } from "../shared/lease-writer.ts";
import { LiveTails } from "../shared/live-tails.ts";
import { withTimeout } from "../shared/outages.ts";
import { POSTGRES } from "../sql/dialect.ts";
import { sqlOwners } from "../sql/owners.ts";
import { createThreads } from "../threads.ts";
import { createBus, createCalls, createRunFeed } from "./bus.ts";
import { openPool, type PostgresAccess } from "./client.ts";
import { createEventCommitter } from "./commit-events.ts";
import type { StoreContext } from "./context.ts";
import { Database } from "./database.ts";
import { postgresDocuments } from "./documents.ts";
import { postgresPages } from "./event-pages.ts";
import { executorOn } from "./executor.ts";
import { postgresKernel } from "./kernel.ts";
import { Notifications } from "./notifications.ts";
import { postgresQuotas } from "./quotas.ts";
import { createRetention } from "./retention.ts";

/** Times come from PostgreSQL's clock, unless `now` provides a clock for all processes. */
export interface PostgresStoreOptions extends StoreOptions {
  /** The URL, for example `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** The maximum number of connections, in addition to the one for notifications. Defaults to 10. */
  readonly pool?: number;
  /**
   * The number of milliseconds after which a call to a slow or unreachable PostgreSQL throws `unavailable`. Defaults to
   * 3000. Calls made inside a run wait for `leaseMs`.
   */
  readonly deadlineMs?: number;
}

/** Threads are kept until they are deleted, unless `threadTtlMs` is set. Events are kept for a day. */
const KEPT = { threadTtlMs: Number.POSITIVE_INFINITY, eventRetentionMs: 86_400_000 };
const DEADLINE_MS = 3_000;
const POOL = 10;
/** The maximum number of milliseconds for which a process that stops within a transaction can delay others. */
const SILENCE_MS = 1_000;

/** Throws `unavailable` if PostgreSQL cannot be reached, or if its schema belongs to a newer version. */
export async function createPostgresStores({
  url,
  pool: most = POOL,
  deadlineMs = DEADLINE_MS,
  ...options
}: PostgresStoreOptions): Promise<AllStores> {
  const limits = { ...DEFAULTS, ...KEPT, ...options };
  const access: PostgresAccess = {
    url,
    pool: most,
    deadlineMs,
    silenceMs: Math.min(SILENCE_MS, limits.leaseMs / 4),
  };
  const pool = await openPool(access);
  const database = new Database(pool, { deadlineMs, patienceMs: limits.leaseMs, now: options.now });
  const notifications = new Notifications(access, database);
  try {
    const shared = await namesOf(database);
    const stores = assemble(database, notifications, limits);
    await notifications.start();
    return { ...stores, shared };
  } catch (error) {
    notifications.close();
    await database.close();
    throw error;
  }
}

/** Returns values shared by all processes of a database. The first process sets them. */
async function namesOf(database: Database): Promise<NonNullable<AllStores["shared"]>> {
  const rows = await database.query<{ name: string; value: string }>(
    `INSERT INTO shared VALUES ('deployment', $1), ('secret', $2)
    ON CONFLICT (name) DO UPDATE SET value = shared.value RETURNING name, value`,
    [randomId(), randomId() + randomId()],
  );
  const of = (name: string) => rows.find((row) => row.name === name)?.value ?? "";
  return { deployment: of("deployment"), secret: of("secret") };
}

function assemble(
  database: Database,
  notifications: Notifications,
  limits: StoreContext["limits"],
): Omit<AllStores, "shared"> {
  const retention = createRetention(database, limits);
  const calls = createCalls(notifications);
  const bus = createBus(notifications);
  const runFeed = createRunFeed(notifications);
  const pages = postgresPages(database, limits, retention);
  const replays = createReplays(pages, database.deadlines);
  const feeds = new LiveTails(pages, runFeed);
  const writer = new Writer(createEventCommitter({ database, limits, calls, runFeed, feeds }));
  const context = { limits, database, retention, calls, runFeed, pages, replays, feeds, writer };
  const kernel = postgresKernel(context);
  const documents = postgresDocuments(database, retention);
  let closed: Promise<void> | undefined;
  retention.start();
  return {
    threads: createThreads(kernel, bus),
    runs: createRuns(kernel),
    events: kernel.events,
    documents,
    owners: createOwners(sqlOwners(POSTGRES, executorOn(database, []))),
    deferredCalls: createDeferredCalls(kernel),
    items: createItems(documents),
    quotas: postgresQuotas(database),
    bus,
    isDurable: true,
    inRun: (work) => database.deadlines.inRun(work),
    ping: () => database.ping(),
    close() {
      closed ??= end();
      return closed;
    },
  };

  async function end(): Promise<void> {
    retention.stop();
    // If PostgreSQL is unreachable, closing takes no longer than any other call.
    await withTimeout(DEADLINE_MS, writer.flush()).catch(() => {});
    feeds.close();
    bus.close();
    calls.close();
    notifications.close();
    await database.close();
  }
}

/**
 * Opens only the document store, with separate connections, for programs that manage API keys. Throws the same errors
 * as `createPostgresStores`.
 */
export async function openPostgresKeys(
  url: string,
  now?: () => number,
): Promise<{ documents: Documents; close(): void }> {
  const pool = await openPool({ url, pool: 2, deadlineMs: DEADLINE_MS, silenceMs: 1_000 });
  const database = new Database(pool, { deadlineMs: DEADLINE_MS, patienceMs: DEADLINE_MS, now });
  return { documents: postgresDocuments(database), close: () => void database.close() };
}
