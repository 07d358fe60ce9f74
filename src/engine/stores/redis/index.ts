// Keeps all data in one Redis or Redis cluster, for any number of processes. When a method resolves, its changes are
// visible to all processes. Redis's own settings determine how durable they are.

import { Redis } from "ioredis";
import type { Documents } from "../../../agent/core/documents.ts";
import { AppError } from "../../../agent/core/errors.ts";
import { randomId } from "../../../lib/random-id.ts";
import type { AllStores } from "../all-stores.ts";
import { latestLeaseEnd } from "../clock-set-back.ts";
import { createDeferredCalls } from "../deferred-calls.ts";
import { createItems } from "../items.ts";
import { DEFAULTS, type Limits, type StoreOptions } from "../options.ts";
import { createOwners } from "../owners.ts";
import { createRuns } from "../runs.ts";
import { createReplays } from "../shared/event-pages.ts";
import { Writer } from "../shared/lease-writer.ts";
import { LiveTails } from "../shared/live-tails.ts";
import { withTimeout } from "../shared/outages.ts";
import { createThreads } from "../threads.ts";
import { createBus, createCalls, createRunFeed } from "./bus.ts";
import { type Clients, openAnother, openClients, warningsOf } from "./client.ts";
import { createEventCommitter } from "./commit-events.ts";
import { RedisConnection, script } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { redisDocuments } from "./documents.ts";
import { redisPages } from "./event-pages.ts";
import { joinRedis } from "./format.ts";
import { redisKernel } from "./kernel.ts";
import { DEFERRED, DEPLOYMENT, DUE, PROBE, SECRET } from "./keys.ts";
import { redisOwners } from "./owners.ts";
import { redisQuotas } from "./quotas.ts";
import { createReplicas, NO_REPLICAS, type Replicas } from "./replicas.ts";
import { createRetention, ignoreErrors } from "./retention.ts";
import { checkRights } from "./rights.ts";
import { createSchedule } from "./schedule.ts";
import { type Channels, createChannels, Subscriber } from "./subscriber.ts";

/** Times come from Redis's clock, unless `now` provides a clock for all processes. */
export interface RedisStoreOptions extends StoreOptions {
  /**
   * The URL, for example `redis://user:password@host:port/database`, or `rediss://` for TLS. For a cluster, the URL of
   * any of its servers.
   */
  readonly url: string;
  /**
   * The number of milliseconds after which a call to a slow or unreachable Redis throws `unavailable`. Defaults to
   * 3000. Calls made inside a run wait for `leaseMs`.
   */
  readonly deadlineMs?: number;
  /**
   * The number of replicas that must confirm a write before it counts. Applies to the start and the end of a run, to
   * messages and to state changes. Not supported for a cluster. Defaults to 0. If too few replicas confirm within a
   * lease, throws `unavailable`.
   */
  readonly waitReplicas?: number;
}

/** How long unused threads are kept by default. Events are kept for a day. */
const KEPT = { threadTtlMs: 30 * 86_400_000, eventRetentionMs: 86_400_000 };
const DEADLINE_MS = 3_000;
const PROBE_MS = 1_000;
/** The maximum number of milliseconds that a readiness probe waits for replicas. */
const READY_MS = 2_000;

/**
 * Throws `unavailable` if Redis cannot be reached or has a format that this version cannot use, and `config_invalid` if
 * Redis is configured in a way that loses data.
 */
export async function createRedisStores({
  url,
  deadlineMs = DEADLINE_MS,
  waitReplicas = 0,
  ...options
}: RedisStoreOptions): Promise<AllStores> {
  const limits = { ...DEFAULTS, ...KEPT, ...options };
  const clients = await openClients(url, deadlineMs);
  const redis = new RedisConnection(clients, limits.leaseMs, options.now);
  try {
    await checkRights(redis, { ...clients, waits: waitReplicas > 0 });
    await joinRedis(redis);
    const deployment = await nameOf(redis, DEPLOYMENT, randomId());
    const secret = await nameOf(redis, SECRET, randomId() + randomId());
    const replicas = replicasOf(clients, waitReplicas, limits);
    const warnings = await warningsOf(clients);
    const delivery = createChannels(clients);
    return { ...assemble({ clients, redis, limits, replicas, delivery }, { deployment, secret }), warnings };
  } catch (error) {
    redis.close();
    clients.messages.disconnect();
    throw error;
  }
}

/** Returns the value of `key`, after setting it to `own` if it has none. */
function nameOf(redis: RedisConnection, key: string, own: string): Promise<string> {
  return redis.run(nameOnce, { key }, { name: own });
}

/** Throws `config_invalid` for a cluster. */
function replicasOf({ commands }: Clients, count: number, { leaseMs }: Limits): Replicas {
  if (count === 0) return NO_REPLICAS;
  if (commands instanceof Redis) return createReplicas(openAnother(commands), count, leaseMs);
  throw new AppError("config_invalid", "`waitReplicas` must be 0 for a Redis cluster.");
}

interface Services {
  readonly clients: Clients;
  readonly redis: RedisConnection;
  readonly replicas: Replicas;
  readonly limits: Limits;
  readonly delivery: Channels;
}

function assemble(
  { clients, redis, replicas, limits, delivery }: Services,
  shared: NonNullable<AllStores["shared"]>,
): AllStores {
  const hub = new Subscriber(clients);
  const owners = redisOwners(redis);
  const retention = createRetention(redis, limits, owners);
  const calls = createCalls(redis, hub, delivery);
  const { leaseMs } = limits;
  const runSchedule = createSchedule(redis, DUE, { holdMs: leaseMs, aheadMs: latestLeaseEnd(0, leaseMs) });
  // A deferred call can be due at any time.
  const callSchedule = createSchedule(redis, DEFERRED, { holdMs: leaseMs });
  const pages = redisPages(redis, limits, retention);
  const replays = createReplays(pages, redis.deadlines);
  const feeds = new LiveTails(pages, createRunFeed(hub, delivery));
  const committer = createEventCommitter({
    redis,
    replicas,
    limits,
    retention,
    runSchedule,
    calls,
    delivery,
    feeds,
  });
  const writer = new Writer(committer);
  const bus = createBus(redis, hub, delivery);
  // If Redis has lost its data, writes the format, the deployment name and the shared secret again.
  clients.commands.on("ready", () => ignoreErrors(restore()));
  let closed: Promise<void> | undefined;
  const context: StoreContext = {
    limits,
    redis,
    replicas,
    retention,
    runSchedule,
    callSchedule,
    calls,
    pages,
    replays,
    feeds,
    writer,
    delivery,
    owners,
  };
  const documents = redisDocuments(context);
  const kernel = redisKernel(context);
  return {
    threads: createThreads(kernel, bus),
    runs: createRuns(kernel),
    events: kernel.events,
    documents,
    deferredCalls: createDeferredCalls(kernel),
    items: createItems(documents),
    owners: createOwners(owners),
    quotas: redisQuotas(redis),
    bus,
    isDurable: true,
    shared,
    inRun: (work) => redis.deadlines.inRun(work),
    async ping() {
      await redis.ping();
      // Redis refuses this write like any new data if it is full or cannot write to its disk.
      const { publish, channelOfProbe: channel } = delivery;
      await redis.run(writeProbe, { probe: PROBE }, { ms: PROBE_MS, publish, channel });
      await replicas.confirm(READY_MS);
    },
    close() {
      closed ??= end();
      return closed;
    },
  };

  /** Writes the format first, because keys without a format are refused. */
  async function restore(): Promise<void> {
    await joinRedis(redis);
    await nameOf(redis, DEPLOYMENT, shared.deployment);
    await nameOf(redis, SECRET, shared.secret);
  }

  async function end(): Promise<void> {
    // If Redis is unreachable, closing takes no longer than any other call.
    await withTimeout(clients.deadlineMs, writer.flush()).catch(() => {});
    feeds.close();
    bus.close();
    calls.close();
    hub.close();
    replicas.close();
    redis.close();
  }
}

// Writes a value and sends a message, as a run does.
const writeProbe = script<number>()({
  kind: "adds",
  keys: ["probe"],
  args: ["ms", "publish", "channel"],
  lua: `
redis.call('SET', probe, '', 'PX', ms)
return redis.call(publish, channel, '')`,
});

// Returns the value of a key that all processes of a database share. The first process sets the value, which never
// changes.
const nameOnce = script<string>()({
  kind: "always",
  keys: ["key"],
  args: ["name"],
  lua: `
redis.call('SET', key, name, 'NX')
return redis.call('GET', key)`,
});

/**
 * Opens only the document store, with a separate connection, for programs that manage API keys. Throws the same errors
 * as `createRedisStores`.
 */
export async function openRedisKeys(
  url: string,
  now?: () => number,
): Promise<{ documents: Documents; close(): void }> {
  const clients = await openClients(url, DEADLINE_MS);
  const redis = new RedisConnection(clients, DEADLINE_MS, now);
  const close = () => {
    redis.close();
    clients.messages.disconnect();
  };
  try {
    await joinRedis(redis);
    return { documents: redisDocuments({ redis }), close };
  } catch (error) {
    close();
    throw error;
  }
}
