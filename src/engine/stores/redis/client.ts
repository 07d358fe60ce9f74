// The connections to Redis: one for commands, one for those with much data, one on which messages come. Redis, or a cluster of
// them.

import { Cluster, Redis, type RedisOptions } from "ioredis";
import { AppError } from "../../../agent/core/errors.ts";
import { type Chance, withTimeout } from "../shared/outages.ts";

const OLDEST_VERSION = 7;

export interface Clients {
  readonly commands: Redis | Cluster;
  /** For commands that ask for much data or bring it: others would wait behind it. */
  readonly bulk: Redis | Cluster;
  /** Closed with `commands`, when it is the same. */
  readonly messages: Redis | Cluster;
  readonly isCluster: boolean;
  /** The number of the database. */
  readonly database: number;
  /** How long anything may take that Redis is asked for. */
  readonly deadlineMs: number;
}

/**
 * A command fails when its connection breaks, and the caller, who knows the deadline, sends it again: nothing
 * waits in a hidden queue. A socket on which Redis stays silent is closed.
 */
const connection = (deadlineMs: number) =>
  ({
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    connectTimeout: deadlineMs,
    socketTimeout: deadlineMs,
  }) satisfies RedisOptions;

/** Throws `unavailable` when there is no Redis within the deadline, `config_invalid` for one that would lose data. */
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

/** About 20 ms, 40 ms, 80 ms … up to a second; never twice the same, so that not all come back at once. */
function backoff(times: number): number {
  return Math.min(1000, 10 * 2 ** times) * (0.75 + Math.random() / 2);
}

async function openBeside(commands: Redis): Promise<Redis> {
  const another = commands.duplicate({ enableAutoPipelining: false, lazyConnect: true });
  another.on("error", ignore);
  // If it fails, it keeps trying by itself.
  await another.connect().catch(ignore);
  return another;
}

/** One more connection to the same Redis, for what others must not wait for. It keeps trying by itself. */
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
    // In a pipeline they would be sent on the connection for commands, which has no listener.
    autoPipeliningIgnoredCommands: ["ssubscribe", "sunsubscribe"],
    shardedSubscribers: true,
    clusterRetryStrategy: backoff,
    // How long it is waited for what a node says of the cluster.
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

/** Redis's description of itself, once it can be asked. */
async function whenUp(commands: Redis, url: string, deadlineMs: number): Promise<Record<string, string>> {
  let last: unknown;
  commands.on("error", (error) => {
    last = error;
  });
  try {
    await withTimeout(deadlineMs, new Promise<void>((resolve) => commands.once("ready", resolve)));
    // It has refused something, such as the number of the database, but would be used anyway.
    if (isReply(last)) throw last;
    return await withTimeout(deadlineMs, described(commands));
  } catch (error) {
    const cause = last ?? error;
    const why = cause instanceof Error ? ` (${cause.message})` : "";
    throw new AppError("unavailable", `Redis at ${placeOf(url)} cannot be used${why}.`, { cause });
  }
}

/** The greeting names the version and the mode for a user without `INFO`. */
async function described(commands: Redis): Promise<Record<string, string>> {
  try {
    return parse(await commands.info());
  } catch (error) {
    if (!isReply(error) || !error.message.startsWith("NOPERM")) throw error;
    // Names and values in turn; the client's types leave it open.
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
      `Redis's maxmemory-policy is \`${policy}\`: it would evict runs and messages. Set it to \`noeviction\`.`,
    );
}

/** Warnings for operators about this Redis. One that does not tell its settings, as managed ones do, gives no reason to warn. */
export async function warningsOf({ commands, deadlineMs }: Clients): Promise<string[]> {
  const read = async (name: string) => {
    // To a pair of texts; the client's types leave it open.
    const [, value] = (await withTimeout(deadlineMs, commands.config("GET", name))) as string[];
    return value;
  };
  try {
    const [appendonly, save] = await Promise.all([read("appendonly"), read("save")]);
    if (appendonly !== "no" || save !== "") return [];
    return [
      'Redis keeps nothing on disk (`appendonly no`, `save ""`): a restart of it loses all threads, runs and API keys. Set `appendonly yes` in redis.conf.',
    ];
  } catch {
    return [];
  }
}

/** Without what is secret in it. */
function placeOf(url: string): string {
  return url.replace(/^\w+:\/\/(.*@)?/, "").replace(/\?.*/, "");
}

/** Callers get the error of their command; the client reconnects by itself. */
function ignore(): void {}

// Errors for refusals of Redis, and for missing answers.
/** Redis will take the same a moment later: it loads its data, or another of its servers has just become the first. */
const PASSES =
  /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|UNBLOCKED) |^ERR max number of clients/;

/** The command itself is wrong. Every other code names a state of Redis, which may change. */
const MISTAKES = /^(ERR(?! The user executing the script)|WRONGTYPE|NOSCRIPT|CROSSSLOT|EXECABORT|NOPROTO) /;

/** States that last until Redis or an operator ends them: the start of Redis's answer, and its meaning. */
const REFUSALS: readonly [start: RegExp, meaning: string][] = [
  [/^OOM /, "Redis is full. Try again later."],
  [/^MISCONF /, "Redis cannot write to its disk. Try again later."],
  [/^NOREPLICAS /, "Redis has lost its replicas. Try again later."],
  [/^BUSY /, "Redis is busy. Try again later."],
  [/^(NOAUTH|WRONGPASS|NOPERM|ERR The user executing the script) /, "Redis refuses access to this server."],
  [/^(?!ERR)[A-Z]+ /, "Redis does not accept commands now. Try again later."],
];

/** Redis has answered, with a refusal. */
export const isReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === "ReplyError";

/** Redis does not know the script with this hash: it was restarted, or another server has taken over. */
export const isUnknownScript = (error: unknown) => isReply(error) && error.message.startsWith("NOSCRIPT");

/** The server on the other end is a replica now. */
export const isReplica = (error: unknown) => isReply(error) && error.message.startsWith("READONLY");

/** When the same command may succeed. Any other error is trouble on the way to Redis. */
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
  return new AppError("unavailable", "Redis does not answer. Try again later.", { cause });
}
