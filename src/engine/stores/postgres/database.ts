// Statements and transactions on PostgreSQL. Connection failures are retried until a deadline. The deadline is short,
// except inside a run, where it is as long as a lease and transient refusals are retried too. The deadline starts when
// the statement is sent, so waiting for a turn does not count.
//
// A transaction sends its statements without waiting for earlier results. It takes two round trips: one for the reads
// that a decision needs and one for the writes.

import { setTimeout as sleep } from "node:timers/promises";
import type { Pool, PoolClient, QueryResultRow } from "pg";
import { hasCode } from "../../../agent/core/errors.ts";
import { randomId } from "../../../lib/random-id.ts";
import { storeClosed } from "../errors.ts";
import { Deadlines, Outages, withTimeout } from "../shared/outages.ts";
import { chanceOf, destroy, isAnswer, leavesConnection, noAnswer, refusal, statementName } from "./client.ts";
import { type Leave, Line, Locks } from "./lines.ts";
import { lockNumber } from "./locks.ts";

/** The initial and the maximum number of milliseconds between two attempts. */
const PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;
const PING_MS = 1_000;

/** SQL for the time: parameter `n` of a statement, or PostgreSQL's clock if the parameter is null. */
export const timeOf = (n: number) =>
  `coalesce($${n}::float8::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)`;

/** Like `timeOf`, but the time is read only once per statement, so PostgreSQL can use an index for a comparison. */
export const momentOf = (n: number) => `(SELECT ${timeOf(n)})`;

/** Returns a statement's rows. */
export type RunQuery = <Row>(sql: string, values?: readonly unknown[]) => Promise<Row[]>;

export interface Transaction {
  /** Sends a statement at once. */
  readonly rows: RunQuery;
  /** Sends a statement that changes data. If it fails, the transaction fails. */
  write(sql: string, values?: readonly unknown[]): void;
  /** Like `write`, but resolves with the returned rows. Await it only after the transaction. */
  writing<Row>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
}

export interface DatabaseOptions {
  readonly deadlineMs: number;
  /** The maximum number of milliseconds to wait inside a run. */
  readonly patienceMs: number;
  /** A clock shared by all processes, instead of PostgreSQL's own. */
  readonly now: (() => number) | undefined;
}

export class Database {
  readonly #pool: Pool;
  readonly #options: DatabaseOptions;
  readonly #connections: Line;
  readonly #locks = new Locks();
  readonly deadlines: Deadlines;
  readonly outages = new Outages();
  #isClosed = false;

  constructor(pool: Pool, options: DatabaseOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#connections = new Line(pool.options.max);
    this.deadlines = new Deadlines(options.deadlineMs, options.patienceMs);
  }

  assertOpen(): void {
    if (this.#isClosed) throw storeClosed();
  }

  /** The parameter of `timeOf`. */
  clock(): number | null {
    return this.#options.now?.() ?? null;
  }

  /** Runs one statement, which must be safe to repeat. Throws `unavailable`. */
  query<Row>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#repeatedly(this.deadlines.ms, (client) => ask<Row>(client, sql, values));
  }

  /** Like `query`, with a deadline long enough for a restart of PostgreSQL. */
  queryUntilLeaseEnds<Row>(sql: string, values: readonly unknown[]): Promise<Row[]> {
    return this.deadlines.inRun(() => this.query<Row>(sql, values));
  }

  /**
   * Runs `work` while no other caller in this process with the same lock is working. A caller that waits for a lock
   * does not use a connection. Throws `unavailable` if PostgreSQL does not answer any of these callers.
   */
  async oneByOne<T>(lock: string, work: () => Promise<T>): Promise<T> {
    this.assertOpen();
    const leave = await this.#locks.enter(lock, this.deadlines.ms).catch((error) => {
      throw noAnswer(error);
    });
    let isAnswered = false;
    try {
      const result = await work();
      isAnswered = true;
      return result;
    } catch (error) {
      isAnswered = !hasCode(error, "unavailable");
      throw error;
    } finally {
      leave(isAnswered);
    }
  }

  /**
   * Commits everything that `work` writes, or nothing if it throws. Commits once, even if the response is lost.
   * Transactions with the same `lock` run one after the other. `work` may be called again, and must only await `rows`.
   * Throws `unavailable`.
   */
  transaction<T>(lock: readonly string[], work: (tx: Transaction) => Promise<T>): Promise<T> {
    const number = lockNumber(...lock);
    return this.oneByOne(number, () => this.#transaction(number, work));
  }

  #transaction<T>(lock: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    const id = randomId();
    let unsure: { readonly value: T } | undefined;
    return this.#repeatedly(this.deadlines.ms, async (client) => {
      const sent: Promise<unknown>[] = [];
      const send = <Row>(sql: string, values: readonly unknown[] = []) => {
        const answer = ask<Row>(client, sql, values);
        answer.catch(() => {});
        sent.push(answer);
        return answer;
      };
      let hasWritten = false;
      const writing = <Row>(sql: string, values?: readonly unknown[]) => {
        hasWritten = true;
        return send<Row>(sql, values);
      };
      const tx: Transaction = { rows: send, write: (sql, values) => void writing(sql, values), writing };
      void send("BEGIN");
      void send("SELECT pg_advisory_xact_lock($1)", [lock]);
      try {
        if (unsure && (await send("SELECT 1 FROM commits WHERE id = $1", [id])).length > 0) {
          await send("ROLLBACK");
          return unsure.value;
        }
        const value = await work(tx);
        if (hasWritten) void send(`INSERT INTO commits VALUES ($1, ${timeOf(2)})`, [id, this.clock()]);
        unsure = hasWritten ? { value } : undefined;
        await this.#end(client, hasWritten, sent);
        return value;
      } catch (error) {
        const first = await firstOf(sent);
        await client.query("ROLLBACK");
        throw first ?? new WorkError(error);
      }
    });
  }

  /** Checks that writes work. Throws `unavailable` after a second without an answer. */
  async ping(): Promise<void> {
    this.assertOpen();
    const ms = Math.min(PING_MS, this.#options.deadlineMs);
    // This writes a row as any other change does, because a full disk may not be noticed until the end of a
    // transaction.
    const values = [randomId(), this.clock()];
    await this.#repeatedly(ms, (client) =>
      ask(client, `INSERT INTO commits VALUES ($1, ${timeOf(2)})`, values),
    );
  }

  /** Waiting calls get `unavailable`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    // Does not wait for a hanging connection.
    await withTimeout(this.#options.deadlineMs, this.#pool.end()).catch(() => {});
  }

  async #end(client: PoolClient, hasWritten: boolean, sent: readonly Promise<unknown>[]): Promise<void> {
    const ended = client.query(hasWritten ? "COMMIT" : "ROLLBACK");
    ended.catch(() => {});
    const failure = await firstOf(sent);
    if (failure !== undefined) {
      await ended;
      throw failure;
    }
    // If a commit fails, the server reports what it did instead.
    const { command } = await ended;
    if (hasWritten && command !== "COMMIT") throw new Error("PostgreSQL rolled back a transaction.");
  }

  async #repeatedly<T>(ms: number, work: (client: PoolClient) => Promise<T>): Promise<T> {
    let until: number | undefined;
    let told: unknown;
    for (let pause = PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        this.assertOpen();
        const leave = await this.#connections.enter(ms);
        until ??= performance.now() + ms;
        const result = await this.#attempt(until, leave, work);
        this.outages.end();
        return result;
      } catch (error) {
        this.assertOpen();
        if (error instanceof WorkError) throw error.cause;
        const chance = chanceOf(error);
        if (!this.deadlines.isWorthwhile(chance)) throw refusal(error);
        this.outages.begin();
        // PostgreSQL's last answer is the most specific error. A failure without an answer may only mean that the time
        // is up.
        if (told === undefined || isAnswer(error)) told = error;
        const left = until === undefined ? 0 : until - performance.now();
        if (left < PAUSE_MS) throw chance === "later" ? refusal(error) : noAnswer(told);
        // The caller that began first also gives up first.
        await sleep(Math.min(pause * (0.5 + Math.random()), left - PAUSE_MS / 2));
      }
    }
  }

  async #attempt<T>(until: number, leave: Leave, work: (client: PoolClient) => Promise<T>): Promise<T> {
    let isAnswered = false;
    try {
      const result = await this.#withClient(until, work);
      isAnswered = true;
      return result;
    } catch (error) {
      isAnswered = error instanceof WorkError || isAnswer(error);
      throw error;
    } finally {
      leave(isAnswered);
    }
  }

  async #withClient<T>(until: number, work: (client: PoolClient) => Promise<T>): Promise<T> {
    this.assertOpen();
    const connecting = this.#pool.connect();
    const client = await withTimeout(until - performance.now(), connecting).catch((error) => {
      connecting.then((late) => late.release()).catch(() => {});
      throw error;
    });
    try {
      const result = await withTimeout(until - performance.now(), work(client));
      client.release();
      return result;
    } catch (error) {
      const isUseful = error instanceof WorkError || leavesConnection(error);
      if (!isUseful) destroy(client);
      client.release(!isUseful);
      throw error;
    }
  }
}

/** An error thrown by the transaction's own work. */
class WorkError extends Error {
  constructor(cause: unknown) {
    super("The transaction was abandoned.", { cause });
  }
}

async function ask<Row>(client: PoolClient, sql: string, values: readonly unknown[]): Promise<Row[]> {
  const { rows } = await client.query<QueryResultRow>(
    values.length === 0 ? { text: sql } : { name: statementName(sql), text: sql, values: [...values] },
  );
  // The statement defines what it returns.
  return rows as Row[];
}

const IN_FAILED_TRANSACTION = "25P02";

/** Only the first failure of a transaction is its cause. */
async function firstOf(sent: readonly Promise<unknown>[]): Promise<unknown> {
  const failed = (await Promise.allSettled(sent)).flatMap((each) =>
    each.status === "rejected" ? [each.reason] : [],
  );
  const isFirst = (reason: unknown) => (reason as { code?: unknown }).code !== IN_FAILED_TRANSACTION;
  return failed.find(isFirst) ?? failed[0];
}
