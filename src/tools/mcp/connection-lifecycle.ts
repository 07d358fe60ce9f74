// The way to one server: connected when it is needed, forgotten when it goes away, connected again by the next
// who needs it. One that cannot be reached is tried again, ever more rarely.

import { setTimeout as sleep } from "node:timers/promises";
import { orAborted } from "../../lib/async.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Turns } from "./call-queue.ts";
import type { Connection, Era } from "./connection.ts";
import type { McpServerDefinition } from "./options.ts";
import type { Log } from "./reporting.ts";
import { dismissed, McpFailure } from "./reporting.ts";

const REST = { base: 1000, cap: 60_000 };
/** A rest that is waited out; who comes in a longer one is told so at once. */
const MAX_WAIT_MS = 2000;
/** A server that ends sooner than that did not really start. */
const PROVEN_MS = 5000;
/** How long a server may take to answer anything, once it has been told that a call is given up. */
const HUNG_MS = 3000;

export interface LinkOptions {
  readonly definition: McpServerDefinition;
  readonly log: Log;
  /** Ours, as servers are told. */
  readonly version: string;
  readonly turns: Turns;
  /** Called for each new connection, and when the server says so: its tools may be others. */
  onToolsChanged(): void;
}

export class Link {
  readonly #options: LinkOptions;
  readonly #closing = new AbortController();
  #connection: Promise<Connection> | undefined;
  #era: Era = "auto";
  #failures = 0;
  #lastFailure = "";
  #restsUntil = 0;
  #retry: NodeJS.Timeout | undefined;
  #isExamined = false;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Throws an `McpFailure` when there is no way to the server now, the signal's reason when it aborts. */
  async connection(signal: AbortSignal): Promise<Connection> {
    if (this.#closing.signal.aborted) throw dismissed();
    const rest = this.#restsUntil - performance.now();
    if (!this.#connection && rest > MAX_WAIT_MS)
      throw new McpFailure("ended", `${this.#lastFailure}; it is tried again in ${Math.ceil(rest / 1000)} s`);
    if (!this.#connection) {
      this.#connection = this.#open(rest);
      // It is told to whoever waits for it, if anybody does.
      this.#connection.catch(() => {});
    }
    return await orAborted(this.#connection, signal);
  }

  /** The next who needs a connection gets another one than this. */
  async replace(connection: Connection): Promise<void> {
    // It was a good one: that another is needed is no failure.
    if (await this.#forget(connection)) this.#failures = 0;
    connection.retire();
  }

  /**
   * Finds out whether a server that let a call down still answers anything. Meanwhile nobody new is sent to it.
   * One that does not is ended as soon as no call is under way.
   */
  examine(connection: Connection): void {
    if (this.#isExamined || this.#closing.signal.aborted) return;
    this.#isExamined = true;
    const letGo = this.#options.turns.hold();
    void this.#exam(connection)
      .catch((error: unknown) => this.#options.log("warn", "cannot be ended", error))
      .finally(() => {
        this.#isExamined = false;
        letGo();
      });
  }

  /** Resolves when the server, if it is a program, and all that it started are gone. */
  async close(): Promise<void> {
    this.#closing.abort(dismissed());
    clearTimeout(this.#retry);
    const connection = await this.#connection?.catch(() => undefined);
    this.#connection = undefined;
    await connection?.close();
  }

  async #exam(connection: Connection): Promise<void> {
    const hung = async () => {
      await sleep(HUNG_MS, undefined, { ref: false });
      await this.#options.turns.over();
      return false;
    };
    if (await Promise.race([connection.isAlive(), hung()])) return;
    this.#options.log("warn", "does not answer any more and is ended");
    await this.#forget(connection);
    await connection.kill();
  }

  async #open(rest: number): Promise<Connection> {
    const { definition, version, onToolsChanged } = this.#options;
    const deadline = new AbortController();
    const signal = AbortSignal.any([this.#closing.signal, deadline.signal]);
    let timer: NodeJS.Timeout | undefined;
    clearTimeout(this.#retry);
    try {
      if (rest > 0) await sleep(rest, undefined, { signal });
      timer = setTimeout(() => deadline.abort(), definition.connect_timeout);
      const { connect } = await import("./connection.ts");
      const onLog = (line: string) => this.#options.log("debug", "says", line);
      const options = { version, signal, era: this.#era, onToolsChanged, onLog };
      const connection = await connect(definition, options);
      this.#era = connection.era;
      this.#watch(connection);
      return connection;
    } catch (error) {
      this.#connection = undefined;
      const late = `did not answer within ${definition.connect_timeout / 1000} s`;
      throw this.#failed(deadline.signal.aborted ? new McpFailure("ended", late) : error);
    } finally {
      clearTimeout(timer);
    }
  }

  #watch(connection: Connection): void {
    this.#options.log("debug", "is connected");
    const since = performance.now();
    void connection.closed.then(async () => {
      const isOurs = await this.#forget(connection);
      if (!isOurs || this.#closing.signal.aborted) return;
      if (performance.now() - since >= PROVEN_MS) this.#failures = 0;
      else this.#rest("ended soon after it had started");
      this.#options.log("warn", connection.end() ?? "has ended");
    });
    // Not before the connection can be asked for its tools.
    queueMicrotask(() => this.#options.onToolsChanged());
  }

  /** Whether it was still the one in use. */
  async #forget(connection: Connection): Promise<boolean> {
    const current = this.#connection;
    if ((await current?.catch(() => undefined)) !== connection || this.#connection !== current) return false;
    this.#connection = undefined;
    return true;
  }

  #failed(error: unknown): McpFailure {
    const failure =
      error instanceof McpFailure ? error : new McpFailure("strange", "cannot be connected", error);
    if (this.#closing.signal.aborted) return failure;
    this.#options.log("warn", `${failure.message}; it is tried again`, failure.cause);
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
