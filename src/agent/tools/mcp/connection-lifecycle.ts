// Manages the connection to one server. Opens it on demand, replaces it when it ends, and retries failed attempts with
// back-off.

import { setTimeout as sleep } from "node:timers/promises";
import { orAborted } from "../../../lib/async.ts";
import { backoff } from "../../../lib/backoff.ts";
import type { CallQueue } from "./call-queue.ts";
import type { Era, McpConnection } from "./connection.ts";
import type { McpServerDefinition } from "./options.ts";
import type { Log } from "./reporting.ts";
import { createTail, dismissed, McpFailure } from "./reporting.ts";

const REST = { base: 1000, cap: 60_000 };
/**
 * The maximum time that a call waits for the next attempt, in ms. If the attempt starts later, the call fails
 * at once.
 */
const MAX_WAIT_MS = 2000;
/** The minimum lifetime of a server, in ms. A server that ends earlier did not start properly. */
const PROVEN_MS = 5000;
/** The maximum time that a server may take to answer a ping after a call was abandoned, in ms. */
const HUNG_MS = 3000;

export interface LinkOptions {
  readonly definition: McpServerDefinition;
  readonly log: Log;
  /** The version of Skein that is sent to servers. */
  readonly version: string;
  readonly queue: CallQueue;
  /** Called for each new connection, and when the server announces that its tools may have changed. */
  onToolsChanged(): void;
}

export class Link {
  readonly #options: LinkOptions;
  readonly #closing = new AbortController();
  #connection: Promise<McpConnection> | undefined;
  #era: Era = "auto";
  #failures = 0;
  #lastFailure = "";
  #restsUntil = 0;
  #retry: NodeJS.Timeout | undefined;
  #isExamined = false;
  #isUp = false;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /**
   * Returns the connection. Throws an `McpFailure` if no connection is available now, and the signal's reason
   * when it aborts.
   */
  async connection(signal: AbortSignal): Promise<McpConnection> {
    if (this.#closing.signal.aborted) throw dismissed();
    const rest = this.#restsUntil - performance.now();
    if (!this.#connection && rest > MAX_WAIT_MS)
      throw new McpFailure("ended", `${this.#lastFailure}; Skein retries in ${Math.ceil(rest / 1000)} s`);
    if (!this.#connection) {
      this.#connection = this.#open(rest);
      // Callers that wait for the connection see the failure.
      this.#connection.catch(() => {});
    }
    return await orAborted(this.#connection, signal);
  }

  /** Makes the next call open a new connection. */
  async replace(connection: McpConnection): Promise<void> {
    // The old connection worked, so this does not count as a failure.
    if (await this.#forget(connection)) this.#failures = 0;
    connection.retire();
  }

  /**
   * Checks whether a server that failed a call still responds. Pauses new calls in the meantime. If the
   * server does not respond, ends it once no call is running.
   */
  examine(connection: McpConnection): void {
    if (this.#isExamined || this.#closing.signal.aborted) return;
    this.#isExamined = true;
    const resume = this.#options.queue.hold();
    void this.#exam(connection)
      .catch((error: unknown) => this.#options.log("warn", "cannot be ended", error))
      .finally(() => {
        this.#isExamined = false;
        resume();
      });
  }

  /** Why no connection exists while attempts fail. The text completes "The server …". */
  get failure(): string | undefined {
    return this.#isUp || this.#failures === 0 ? undefined : this.#lastFailure;
  }

  /** Resolves when the server's process, if any, and all its descendants have ended. */
  async close(): Promise<void> {
    this.#closing.abort(dismissed());
    clearTimeout(this.#retry);
    const connection = await this.#connection?.catch(() => undefined);
    this.#connection = undefined;
    await connection?.close();
  }

  async #exam(connection: McpConnection): Promise<void> {
    const hung = async () => {
      await sleep(HUNG_MS, undefined, { ref: false });
      await this.#options.queue.over();
      return false;
    };
    if (await Promise.race([connection.isAlive(), hung()])) return;
    this.#options.log("warn", "no longer answers and is being ended");
    await this.#forget(connection);
    await connection.kill();
  }

  async #open(rest: number): Promise<McpConnection> {
    const { definition, version, onToolsChanged } = this.#options;
    const deadline = new AbortController();
    const signal = AbortSignal.any([this.#closing.signal, deadline.signal]);
    const tail = createTail();
    let timer: NodeJS.Timeout | undefined;
    clearTimeout(this.#retry);
    try {
      if (rest > 0) await sleep(rest, undefined, { signal });
      timer = setTimeout(() => deadline.abort(), definition.connect_timeout);
      const { connect } = await import("./connection.ts");
      const onLog = (line: string) => {
        this.#options.log("debug", "says", line);
        tail.add(line);
      };
      const options = { version, signal, era: this.#era, onToolsChanged, onLog };
      const connection = await connect(definition, options);
      this.#era = connection.era;
      this.#isUp = true;
      this.#watch(connection, tail.lines);
      return connection;
    } catch (error) {
      this.#connection = undefined;
      const late = `did not answer within ${definition.connect_timeout / 1000} s`;
      throw this.#failed(deadline.signal.aborted ? new McpFailure("ended", late) : error, tail.lines);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Watches a connection. The server's output is appended to `said` as it arrives. */
  #watch(connection: McpConnection, said: readonly string[]): void {
    this.#options.log("debug", "is connected");
    const since = performance.now();
    void connection.closed.then(async () => {
      const isOurs = await this.#forget(connection);
      if (!isOurs || this.#closing.signal.aborted) return;
      if (performance.now() - since >= PROVEN_MS) this.#failures = 0;
      else this.#rest("ended soon after it had started");
      this.#options.log("warn", connection.end() ?? "has ended", undefined, said);
    });
    // Runs after the connection is ready to list its tools.
    queueMicrotask(() => this.#options.onToolsChanged());
  }

  /** Drops the connection. Returns true if it was still in use. */
  async #forget(connection: McpConnection): Promise<boolean> {
    const current = this.#connection;
    if ((await current?.catch(() => undefined)) !== connection || this.#connection !== current) return false;
    this.#connection = undefined;
    this.#isUp = false;
    return true;
  }

  #failed(error: unknown, said: readonly string[]): McpFailure {
    const failure =
      error instanceof McpFailure ? error : new McpFailure("strange", "cannot be connected", error);
    if (this.#closing.signal.aborted) return failure;
    this.#options.log("warn", `${failure.message}; will retry`, failure.cause, said);
    const rest = this.#rest(failure.message);
    this.#retry = setTimeout(() => void this.connection(this.#closing.signal).catch(() => {}), rest).unref();
    return failure;
  }

  #rest(why: string): number {
    const rest = backoff(this.#failures++, REST);
    this.#lastFailure = why;
    this.#restsUntil = performance.now() + rest;
    return rest;
  }
}
