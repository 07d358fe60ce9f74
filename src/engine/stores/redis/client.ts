// The connections to Redis or a Redis cluster: one for commands, one for large data, and one for messages.

import { Cluster, Redis, type RedisOptions } from "ioredis";
import { AppError } from "../../../agent/core/errors.ts";
import { type Chance, withTimeout } from "../shared/outages.ts";

const OLDEST_VERSION = 7;

export interface Clients {
  readonly commands: Redis | Cluster;
  /** For commands with large requests or replies, which would hold up other commands. */
  readonly bulk: Redis | Cluster;
  /** Closed with `commands` if it is the same connection. */
  readonly messages: Redis | Cluster;
  readonly isCluster: boolean;
  /** The number of the database. */
  readonly database: number;
  /** The maximum number of milliseconds for any request to Redis. */
  readonly deadlineMs: number;
}

/**
 * A command fails when its connection breaks. The caller knows the deadline and retries, so nothing waits in a hidden
 * queue. If Redis stops answering on a socket, the socket is closed.
 */
const connection = (deadlineMs: number) =>
  ({
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    connectTimeout: deadlineMs,
    socketTimeout: deadlineMs,
  }) satisfies RedisOptions;

/**
 * Throws `unavailable` if Redis is unreachable within the deadline, and `config_invalid` if Redis is configured in a
 * way that loses data.
 */
export async function openClients(url: string, deadlineMs: number): Promise<Clients> {
  const commands = new Redis(url, {
    ...connection(deadlineMs),
    enableOfflineQueue: false,
    enableAutoPipelining: true,
    retryStrategy: backoff,
  });
  try {
    const info = await whenUp(commands, url, deadlineMs);
    check(info);
    const rest = { database: commands.options.db ?? 0, deadlineMs };
    if (info.redis_mode !== "cluster") {
      const [bulk, messages] = await Promise.all([openBeside(commands), openBeside(commands)]);
      return { commands, bulk, messages, isCluster: false, ...rest };
    }
    const cluster = await openCluster(commands, deadlineMs);
    commands.disconnect();
    const bulk = cluster.duplicate([], { enableAutoPipelining: false, shardedSubscribers: false });
    bulk.on("error", ignore);
    return { commands: cluster, bulk, messages: cluster, isCluster: true, ...rest };
  } catch (error) {
    commands.disconnect();
    throw error;
  }
}

/** Returns about 20 ms, 40 ms, 80 ms … up to one second, with jitter, so clients do not reconnect all at once. */
function backoff(times: number): number {
  return Math.min(1000, 10 * 2 ** times) * (0.75 + Math.random() / 2);
}

async function openBeside(commands: Redis): Promise<Redis> {
  const another = commands.duplicate({ enableAutoPipelining: false, lazyConnect: true });
  another.on("error", ignore);
  // If this fails, the client keeps trying on its own.
  await another.connect().catch(ignore);
  return another;
}

/**
 * Opens one more connection to the same Redis, for requests that must not delay others. It keeps trying to connect on
 * its own.
 */
export function openAnother(first: Redis): Redis {
  const another = first.duplicate({ enableAutoPipelining: false });
  another.on("error", ignore);
  return another;
}

async function openCluster(first: Redis, deadlineMs: number): Promise<Cluster> {
  const { host = "localhost", port = 6379, username, password, tls } = first.options;
  const access = {
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
    ...(tls ? { tls } : {}),
  };
  const cluster = new Cluster([{ host, port }], {
    enableAutoPipelining: true,
    // A pipeline would send these commands on the connection for commands, which has no listener.
    autoPipeliningIgnoredCommands: ["ssubscribe", "sunsubscribe"],
    shardedSubscribers: true,
    clusterRetryStrategy: backoff,
    // The maximum number of milliseconds to wait for a node's description of the cluster.
    slotsRefreshTimeout: deadlineMs,
    redisOptions: { ...connection(deadlineMs), ...access },
  });
  cluster.on("error", ignore);
  try {
    await withTimeout(deadlineMs, cluster.ping());
    return cluster;
  } catch (cause) {
    cluster.disconnect();
    throw new AppError("unavailable", `The Redis cluster at ${host}:${port} cannot be used.`, { cause });
  }
}

/** Returns Redis's description of itself as soon as it answers. */
async function whenUp(commands: Redis, url: string, deadlineMs: number): Promise<Record<string, string>> {
  let last: unknown;
  commands.on("error", (error) => {
    last = error;
  });
  try {
    await withTimeout(deadlineMs, new Promise<void>((resolve) => commands.once("ready", resolve)));
    // Redis refused something, for example the database number, but the client would use the connection anyway.
    if (isReply(last)) throw last;
    return await withTimeout(deadlineMs, described(commands));
  } catch (error) {
    const cause = last ?? error;
    const why = cause instanceof Error ? ` (${cause.message})` : "";
    throw new AppError("unavailable", `Redis at ${placeOf(url)} cannot be used${why}.`, { cause });
  }
}

/** The greeting contains the version and the mode, even for a user who may not call `INFO`. */
async function described(commands: Redis): Promise<Record<string, string>> {
  try {
    return parse(await commands.info());
  } catch (error) {
    if (!isReply(error) || !error.message.startsWith("NOPERM")) throw error;
    // Alternating names and values. The client's types do not describe this reply.
    const greeting = (await commands.call("HELLO")) as unknown[];
    const of = (name: string) => String(greeting[greeting.indexOf(name) + 1]);
    return { redis_version: of("version"), redis_mode: of("mode") };
  }
}

const parse = (info: string) =>
  Object.fromEntries([...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, k, v]) => [k, v]));

function check({
  redis_version: version = "",
  maxmemory = "0",
  maxmemory_policy: policy,
}: Record<string, string>): void {
  if (Number.parseInt(version, 10) < OLDEST_VERSION)
    throw new AppError("config_invalid", `Redis ${version} is too old. Use ${OLDEST_VERSION} or newer.`);
  if (maxmemory !== "0" && policy !== "noeviction")
    throw new AppError(
      "config_invalid",
      `Redis's maxmemory-policy is \`${policy}\`, which would evict runs and messages. Set it to \`noeviction\`.`,
    );
}

/**
 * Returns warnings for operators about this Redis. If a managed Redis hides its settings, there is no warning about
 * them.
 */
export async function warningsOf({ commands, deadlineMs }: Clients): Promise<string[]> {
  const read = async (name: string) => {
    // A name and a value. The client's types do not describe this reply.
    const [, value] = (await withTimeout(deadlineMs, commands.config("GET", name))) as string[];
    return value;
  };
  try {
    const [appendonly, save] = await Promise.all([read("appendonly"), read("save")]);
    if (appendonly !== "no" || save !== "") return [];
    return [
      'Redis keeps nothing on disk (`appendonly no`, `save ""`), so a restart loses all threads, runs and API keys. Set `appendonly yes` in redis.conf.',
    ];
  } catch {
    return [];
  }
}

/** Removes the secrets from an address. */
function placeOf(url: string): string {
  return url.replace(/^\w+:\/\/(.*@)?/, "").replace(/\?.*/, "");
}

/** Callers get the error of their command. The client reconnects on its own. */
function ignore(): void {}

// Errors for Redis's refusals and for missing replies.
/** Redis will accept the same command a moment later: it is loading its data, or another server has just become the primary. */
const PASSES =
  /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|UNBLOCKED) |^ERR max number of clients/;

/** The command itself is wrong. Every other code describes a state of Redis, which may change. */
const MISTAKES = /^(ERR(?! The user executing the script)|WRONGTYPE|NOSCRIPT|CROSSSLOT|EXECABORT|NOPROTO) /;

/** States that last until Redis or an operator ends them: the prefix of Redis's reply and its meaning. */
const REFUSALS: readonly [start: RegExp, meaning: string][] = [
  [/^OOM /, "Redis is full. Try again later."],
  [/^MISCONF /, "Redis cannot write to its disk. Try again later."],
  [/^NOREPLICAS /, "Redis has lost its replicas. Try again later."],
  [/^BUSY /, "Redis is busy. Try again later."],
  [/^(NOAUTH|WRONGPASS|NOPERM|ERR The user executing the script) /, "Redis refuses access to this server."],
  [/^(?!ERR)[A-Z]+ /, "Redis is not accepting commands. Try again later."],
];

/** Returns true if Redis has replied with a refusal. */
export const isReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === "ReplyError";

/**
 * Returns true if Redis does not know the script with this hash, because it was restarted or another server took over.
 */
export const isUnknownScript = (error: unknown) => isReply(error) && error.message.startsWith("NOSCRIPT");

/** Returns true if the server has become a replica. */
export const isReplica = (error: unknown) => isReply(error) && error.message.startsWith("READONLY");

/** Returns when the same command may succeed. Any other error is a connection problem. */
export function chanceOf(error: unknown): Chance {
  if (!isReply(error) || PASSES.test(error.message)) return "soon";
  return MISTAKES.test(error.message) ? "never" : "later";
}

/** Translates Redis's refusal for the caller. */
export function refusal(error: unknown): unknown {
  if (!isReply(error) || chanceOf(error) === "never") return error;
  const [, meaning] = REFUSALS.find(([start]) => start.test(error.message)) ?? [];
  return meaning === undefined ? error : new AppError("unavailable", meaning, { cause: error });
}

export function missingReplicas(count: number): AppError {
  const whom = count === 1 ? "Redis's replica does" : `${count} replicas of Redis do`;
  return new AppError("unavailable", `${whom} not have the written data yet. Try again later.`);
}

export function noAnswer(cause: unknown): AppError {
  return new AppError("unavailable", "Redis is not responding. Try again later.", { cause });
}
