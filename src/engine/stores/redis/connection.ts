// Sends commands to Redis as scripts with named keys and arguments. Every call returns, or throws `unavailable`, within
// its deadline. Until then, connection failures are retried, which is safe for every script. Inside a run, the deadline
// is as long as a lease, and transient refusals are retried too. Elsewhere, the deadline is short. Commands with large
// data use a separate connection, on which tenants take turns, so other commands never wait behind them.

import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster, type Redis } from "ioredis";
import { storeClosed } from "../errors.ts";
import { Deadlines, Outages, withTimeout } from "../shared/outages.ts";
import { limitReads } from "../shared/read-limit.ts";
import { type Clients, chanceOf, isReplica, isReply, isUnknownScript, noAnswer, refusal } from "./client.ts";

/** The maximum number of milliseconds that a readiness probe waits. */
const PING_MS = 2_000;
/**
 * The maximum number of concurrent scripts with large data, which use about 0.5 MiB unless single messages are larger.
 */
const BULK_AT_ONCE = 2;
/** The maximum number of bytes to read between other commands. Larger reads use the connection for large data. */
export const LITTLE_BYTES = 32 * 1024;
/** A script whose arguments have more than this number of characters uses the connection for large data. */
const BULK_CHARS = 64 * 1024;
const PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;

type Client = Redis | Cluster;

/** Runs a script. `rest` contains the script's unnamed arguments. Throws `unavailable`. */
export type RunScript = <Key extends string, Arg extends string, Reply>(
  script: Script<Key, Arg, Reply>,
  keys: Readonly<Record<Key, string>>,
  args: Readonly<Record<Arg, string | number>>,
  rest?: readonly string[],
) => Promise<Reply>;

export class RedisConnection {
  readonly run: RunScript;
  /** Like `run`, for a request that may be large. A large request waits for the tenant's turn. */
  readonly runFor: (tenant: string) => RunScript;
  /** Like `run`, for a script whose reply may be large. It waits for the tenant's turn. */
  readonly runBulk: (tenant: string) => RunScript;
  /** Like `run`, with a deadline long enough for a restart of Redis. */
  readonly runUntilLeaseEnds: RunScript;
  readonly deadlines: Deadlines;
  readonly outages = new Outages();
  readonly #client: Client;
  readonly #bulk: Client;
  readonly #inTurn = limitReads(BULK_AT_ONCE);
  readonly #now: (() => number) | undefined;
  readonly #deadlineMs: number;
  /** Resolved while connected. */
  #up = Promise.withResolvers<void>();
  /** The reason why there is no connection. Undefined while connected. */
  #trouble: Error | undefined;
  #isClosed = false;

  /** Calls inside a run wait and retry for `patienceMs`. `now` replaces Redis's own clock. */
  constructor({ commands, bulk, deadlineMs }: Clients, patienceMs: number, now: (() => number) | undefined) {
    this.#client = commands;
    this.#bulk = bulk;
    this.#now = now;
    this.#deadlineMs = deadlineMs;
    this.deadlines = new Deadlines(deadlineMs, patienceMs);
    this.runFor = (tenant) => (script, keys, args, rest) => {
      const values = this.#valuesOf(script, keys, args, rest);
      return isLarge(rest) ? this.#evaluateBulk(script, values, tenant) : this.#evaluate(script, values);
    };
    // Large writes without a tenant come from runs, which do not wait for turns.
    this.run = this.runFor("");
    this.runBulk = (tenant) => (script, keys, args, rest) =>
      this.#evaluateBulk(script, this.#valuesOf(script, keys, args, rest), tenant);
    this.runUntilLeaseEnds = (script, keys, args, rest) =>
      this.deadlines.inRun(() => this.run(script, keys, args, rest));
    this.#up.resolve();
    commands.on("ready", () => this.#rise());
    commands.on("close", () => this.#fall());
    commands.on("error", (error: Error) => {
      this.#trouble = error;
    });
  }

  assertOpen(): void {
    if (this.#isClosed) throw storeClosed();
  }

  /** Sends a single command if no script is needed. It must be safe to repeat. Throws `unavailable`. */
  ask<T>(command: (client: Redis | Cluster) => Promise<T>): Promise<T> {
    return this.#repeatedly(this.#until(), command);
  }

  /** Publishes a message on a channel, at most once. Does not wait, and fails silently. */
  tell(channel: string, message: string): void {
    const client = this.#client;
    const told =
      client instanceof Cluster ? client.spublish(channel, message) : client.publish(channel, message);
    told.catch(() => {});
  }

  /** Throws `unavailable`. If there is no connection, throws at once. */
  async ping(): Promise<void> {
    this.assertOpen();
    if (this.#client.status !== "ready") throw noAnswer(this.#trouble);
    try {
      await withTimeout(Math.min(PING_MS, this.#deadlineMs), this.#client.ping());
    } catch (error) {
      throw chanceOf(error) === "soon" ? noAnswer(this.#trouble ?? error) : refusal(error);
    }
  }

  /** Waiting calls get `unavailable`. */
  close(): void {
    this.#isClosed = true;
    this.#up.resolve();
    this.#client.disconnect();
    this.#bulk.disconnect();
  }

  #rise(): void {
    this.outages.end();
    this.#trouble = undefined;
    this.#up.resolve();
  }

  #fall(): void {
    this.#trouble ??= new Error("The connection was closed.");
    if (!this.outages.isOut) {
      this.#up = Promise.withResolvers();
      // Another server may now have the same name.
      if (!this.#isClosed) this.#bulk.disconnect(true);
    }
    this.outages.begin();
  }

  #reconnect(): void {
    this.#client.disconnect(true);
    this.#bulk.disconnect(true);
  }

  #valuesOf<Key extends string, Arg extends string>(
    script: Script<Key, Arg, unknown>,
    keys: Readonly<Record<Key, string>>,
    args: Readonly<Record<Arg, string | number>>,
    rest: readonly string[] = [],
  ): string[] {
    const names = script.keys.map((name) => keys[name]);
    const named = script.args.map((name) => String(args[name]));
    return [...names, this.#now ? String(this.#now()) : "", ...named, ...rest];
  }

  async #evaluate<Reply>(script: Script<string, string, Reply>, values: string[]): Promise<Reply> {
    // The script's own file defines its return value.
    return (await this.#repeatedly(this.#until(), evaluation(script, values))) as Reply;
  }

  async #evaluateBulk<Reply>(
    script: Script<string, string, Reply>,
    values: string[],
    tenant: string,
  ): Promise<Reply> {
    const { ms, isInRun } = this.deadlines;
    const until = this.#until();
    const ask = () => this.#repeatedly(until, evaluation(script, values), this.#bulk);
    // A call inside a run has a longer deadline than other callers, so it does not wait for a turn among them. The
    // script's own file defines its return value.
    return (await (isInRun ? ask() : this.#inTurn(tenant, ms, ask))) as Reply;
  }

  /** Returns the deadline of a request that starts now. */
  #until(): number {
    return performance.now() + this.deadlines.ms;
  }

  async #repeatedly<T>(
    until: number,
    ask: (client: Client) => Promise<T>,
    client = this.#client,
  ): Promise<T> {
    let first: unknown;
    for (let pause = PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        this.assertOpen();
        if (this.outages.isOut) await withTimeout(until - performance.now(), this.#up.promise);
        return await withTimeout(until - performance.now(), ask(client));
      } catch (error) {
        this.assertOpen();
        const chance = chanceOf(error);
        if (!this.deadlines.isWorthwhile(chance)) throw refusal(error);
        // The last error may only mean that the time is up.
        first ??= error;
        if (performance.now() + pause >= until) {
          // The next command must not wait for the rest of an unread reply.
          if (client === this.#bulk && !isReply(error)) this.#bulk.disconnect(true);
          throw chance === "later" ? refusal(error) : noAnswer(this.#trouble ?? first);
        }
        // Another server may now have the same name.
        if (isReplica(error)) this.#reconnect();
        await sleep(pause);
      }
    }
  }
}

/**
 * Returns true if a script with these arguments uses the connection for large data. Commands that were sent before a
 * large script may be answered after it.
 */
export const isLarge = (rest: readonly string[] = []) =>
  rest.reduce((length, value) => length + value.length, 0) > BULK_CHARS;

/** Sends the text of a script that Redis does not know, and again with every retry, because a reply may be lost. */
function evaluation({ sha, text, keys }: Script<string, string, unknown>, values: string[]) {
  let isKnown = true;
  // The values are one argument, because there may be more of them than a function call accepts.
  return async (client: Client): Promise<unknown> => {
    try {
      if (isKnown) return await client.evalsha(sha, keys.length, values);
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      isKnown = false;
    }
    return client.eval(text, keys.length, values);
  };
}

// Lua scripts with named keys and arguments. The text defines the names once, and a call cannot mix them up.

/** `Reply` is the return value of the script's last lines in the client's form: strings, integers, null, and lists. */
export interface Script<Key extends string, Arg extends string, Reply> {
  readonly text: string;
  readonly sha: string;
  readonly keys: readonly Key[];
  readonly args: readonly Arg[];
  /** Exists only as a type. */
  readonly reply?: Reply;
}

interface Definition<Key extends string, Arg extends string> {
  /** `reads` changes nothing. `adds` is refused while Redis is full, before it changes anything; `always` is not. */
  readonly kind: "reads" | "adds" | "always";
  readonly keys: readonly Key[];
  readonly args: readonly Arg[];
  readonly lua: string;
}

const FLAGS = { reads: " flags=no-writes", adds: "", always: " flags=allow-oom" };

/**
 * In `lua`, every key and argument is a local with its name; arguments are text. `time()` is Redis's own clock in
 * milliseconds. `REST` is the index in ARGV of the first unnamed argument.
 */
export function script<Reply>() {
  return <const Key extends string, const Arg extends string>(
    definition: Definition<Key, Arg>,
  ): Script<Key, Arg, Reply> => {
    const { kind, keys, args, lua } = definition;
    const names = [...locals(keys, "KEYS", 0), ...locals(args, "ARGV", 1)];
    const text = [`#!lua${FLAGS[kind]}`, ...names, `local REST = ${args.length + 2}`, TIME, lua].join("\n");
    return { text, sha: hash("sha1", text), keys, args };
  };
}

const locals = (names: readonly string[], list: string, before: number) =>
  names.map((name, index) => `local ${name} = ${list}[${index + 1 + before}]`);

/** The first argument replaces Redis's own time, or is empty. */
const TIME = `
local function time()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local now = redis.call('TIME')
  return now[1] * 1000 + math.floor(now[2] / 1000)
end`;
