// Connects to PostgreSQL, and interprets its errors and missing responses.

import { hash } from "node:crypto";
import pg, { type Client, type ClientBase, type ClientConfig, type Pool } from "pg";
import { AppError } from "../../../agent/core/errors.ts";
import { type Chance, withTimeout } from "../shared/outages.ts";
import { OLDEST_VERSION, prepareSchema } from "./schema.ts";
import { checkSessions, NO_SESSIONS } from "./sessions.ts";

export interface PostgresAccess {
  readonly url: string;
  /** The maximum number of connections, in addition to the one for notifications. */
  readonly pool: number;
  readonly deadlineMs: number;
  /** The number of milliseconds of silence after which PostgreSQL rolls back a transaction. */
  readonly silenceMs: number;
}

const INT8 = 20;

/** Parses whole numbers as numbers, because all values in the tables are small enough. */
const types = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === INT8 && format !== "binary"
      ? Number
      : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

const configOf = ({ url, deadlineMs }: PostgresAccess): ClientConfig => ({
  connectionString: url,
  connectionTimeoutMillis: deadlineMs,
  application_name: "skein",
  keepAlive: true,
  types,
});

/** Throws `unavailable` if PostgreSQL is unreachable within the deadline, or if its schema cannot be used. */
export async function openPool(access: PostgresAccess): Promise<Pool> {
  const pool = new pg.Pool({
    ...configOf(access),
    // Statements of a transaction do not wait for each other.
    pipeline: true,
    max: access.pool,
    onConnect: (client) => prepare(client, access),
  });
  // Callers get the error of their statement. The pool opens another connection.
  pool.on("error", ignore);
  pool.on("connect", (client) => client.on("error", ignore));
  try {
    await withTimeout(access.deadlineMs, checked(pool, access));
    return pool;
  } catch (error) {
    void pool.end().catch(ignore);
    if (error instanceof AppError) throw error;
    const why = error instanceof Error ? ` (${error.message})` : "";
    throw new AppError("unavailable", `PostgreSQL at ${placeOf(access.url)} cannot be used${why}.`, {
      cause: error,
    });
  }
}

/** Creates one more connection, for notifications. The caller must call its `connect` and `end`. */
export function newClient(access: PostgresAccess): Client {
  const client = new pg.Client({ ...configOf(access), application_name: "skein notifications" });
  client.on("error", ignore);
  return client;
}

async function prepare(client: ClientBase, { silenceMs }: PostgresAccess): Promise<void> {
  // A database or role may use stricter transactions by default, which abort each other.
  await client.query(
    `SET search_path = skein; SET default_transaction_isolation = 'read committed'; SET idle_in_transaction_session_timeout = ${silenceMs}`,
  );
}

async function checked(pool: Pool, access: PostgresAccess): Promise<void> {
  const client = await pool.connect();
  const another = newClient(access);
  try {
    const { rows } = await client.query("SHOW server_version_num");
    const version = Math.floor(Number(rows[0]?.server_version_num) / 10_000);
    if (version < OLDEST_VERSION)
      throw new AppError(
        "config_invalid",
        `PostgreSQL ${version} is too old. Use ${OLDEST_VERSION} or newer.`,
      );
    const { encoding } =
      (await client.query("SELECT current_setting('server_encoding') AS encoding")).rows[0] ?? {};
    // SQL_ASCII keeps bytes unchanged.
    if (encoding !== "UTF8" && encoding !== "SQL_ASCII")
      throw new AppError(
        "config_invalid",
        `The database has the encoding ${String(encoding)}, which lacks most characters. Use one with ENCODING 'UTF8'.`,
      );
    await another.connect();
    await checkSessions({ client, another, deadlineMs: (2 / 3) * access.deadlineMs });
    await prepareSchema(client, access.deadlineMs);
  } finally {
    client.release();
    void another.end().catch(ignore);
  }
}

/** Closes the socket at once, because the server may never answer. */
export function destroy(client: ClientBase): void {
  // The types of `pg` lack this field. The pool of `pg` closes connections in the same way.
  const { connection } = client as unknown as { connection?: { stream: { destroy(): void } } };
  connection?.stream.destroy();
}

const names = new Map<string, string>();

/**
 * Returns the name under which a connection keeps a prepared statement. The number of names is limited by the number of
 * statements in the program.
 */
export function statementName(sql: string): string {
  const known = names.get(sql);
  if (known) return known;
  const name = `skein_${hash("sha1", sql).slice(0, 20)}`;
  names.set(sql, name);
  return name;
}

/** Returns the address without its secrets. */
export function placeOf(url: string): string {
  return url.replace(/^\w+:\/\/(.*@)?/, "").replace(/\?.*/, "");
}

function ignore(): void {}

// PostgreSQL's errors, by their codes.
/**
 * The same statement may succeed a moment later: PostgreSQL is starting or stopping, another transaction interfered, a
 * thread was just deleted, or another connection is needed.
 */
const PASSES = /^(08|40|57P|53300|55P03|23503|25P03|25006|57014|0A000|26000|42P05)/;
/**
 * The statement may succeed once an operator, or time, has resolved the cause: disk, memory, connections, the operating
 * system, permissions, or an object in use.
 */
const LASTS = /^(53|55|57|58|28|42501|3D000|XX000)/;
/**
 * The statement may succeed on another connection: the server became a replica, or this connection lost its prepared
 * statements.
 */
const SPOILT = /^(25006|0A000|26000|42P05)/;
/**
 * The codes of failures that usually pass, and what they mean if they persist. Prepared statements are lost if
 * connections share sessions.
 */
const PERSISTENT: readonly [start: RegExp, meaning: string][] = [
  [/^25006/, "PostgreSQL is not accepting writes. Try again later."],
  [/^(26000|42P05)/, NO_SESSIONS],
];
const ENDED: ReadonlySet<unknown> = new Set(["FATAL", "PANIC"]);

/** Failures that only an operator can fix: the prefix of the code and its meaning. */
const REFUSALS: readonly [start: RegExp, meaning: string][] = [
  [/^53/, "PostgreSQL is full. Try again later."],
  [/^(28|42501|3D000)/, "PostgreSQL refuses access to this server."],
  [/^(55|57|58|XX000)/, "PostgreSQL is not accepting statements. Try again later."],
];

export const isAnswer = (error: unknown): error is Error & { severity: unknown; code?: unknown } =>
  error instanceof Error && "severity" in error;

const codeOf = (error: unknown) => (isAnswer(error) ? String(error.code) : undefined);

/** Returns true if PostgreSQL has answered, so its connection can be used again. */
export const leavesConnection = (error: unknown) =>
  isAnswer(error) && !ENDED.has(error.severity) && !SPOILT.test(String(error.code));

/** Returns when the same statement may succeed. Any other error is a connection problem. */
export function chanceOf(error: unknown): Chance {
  const code = codeOf(error);
  if (code === undefined || PASSES.test(code)) return "soon";
  return LASTS.test(code) || (isAnswer(error) && ENDED.has(error.severity)) ? "later" : "never";
}

/** Translates a refusal for the caller. */
export function refusal(error: unknown): unknown {
  const code = codeOf(error) ?? "";
  const [, meaning] = REFUSALS.find(([start]) => start.test(code)) ?? [];
  return meaning === undefined ? error : new AppError("unavailable", meaning, { cause: error });
}

export function noAnswer(cause: unknown): AppError {
  const code = codeOf(cause) ?? "";
  const [, meaning = "PostgreSQL is not responding. Try again later."] =
    PERSISTENT.find(([start]) => start.test(code)) ?? [];
  return new AppError("unavailable", meaning, { cause });
}
