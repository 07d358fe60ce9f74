// The tables of format 1, and the check that a database has them. All are in the schema `skein`, so other programs can
// share the database. Texts that users choose are stored as JSON, which contains no NUL characters.

import type { ClientBase } from "pg";
import { AppError } from "../../../agent/core/errors.ts";
import { type Format, join } from "../format.ts";
import { quotaTables, type Types, threadTables } from "../sql/schema.ts";
import { lockNumber } from "./locks.ts";

const TYPES: Types = {
  id: 'text COLLATE "C"',
  text: "text",
  whole: "bigint",
  real: "double precision",
  flag: (isSet) => `boolean NOT NULL DEFAULT ${isSet}`,
  rows: "",
  key: "",
  columns: {
    threads: "",
    runs: "last_seq bigint NOT NULL DEFAULT 0, epochs bigint[] NOT NULL DEFAULT '{}',",
    calls: 'tenant text COLLATE "C" NOT NULL,',
  },
};

// `turns` has one row per thread with an active or waiting run. It contains the active run, its holder, its last entry
// with the batch that wrote it, and the next check. `due` and `turn` order the waiting threads. `served` is the time at
// which a thread of each tenant was last taken. `staged` contains the messages of threads that are being copied.
// `commits` contains the changes of the last minute.
const TABLES = `
CREATE TABLE format (version integer NOT NULL, readable_from integer NOT NULL);
CREATE TABLE shared (name text COLLATE "C" PRIMARY KEY, value text NOT NULL);
CREATE TABLE commits (id text COLLATE "C" PRIMARY KEY, at bigint NOT NULL);
CREATE INDEX commits_by_time ON commits (at);
CREATE SEQUENCE turn_numbers;
${threadTables(TYPES)}
CREATE INDEX threads_by_use ON threads (used_at);
CREATE INDEX threads_interrupted ON threads (used_at) WHERE outcome = 'interrupted';
CREATE INDEX runs_waiting ON runs (owner, thread_id, place) WHERE status = 'pending';
CREATE INDEX runs_ended ON runs (ended_at) WHERE has_events AND ended_at IS NOT NULL;

CREATE TABLE turns (
  owner text COLLATE "C" NOT NULL,
  thread_id text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  run_id text COLLATE "C",
  epoch bigint NOT NULL DEFAULT 0,
  attempt integer NOT NULL DEFAULT 1,
  released integer NOT NULL DEFAULT 0,
  stop text,
  last_seq bigint NOT NULL DEFAULT 0,
  batch bigint NOT NULL DEFAULT 0,
  until bigint NOT NULL DEFAULT 0,
  due bigint NOT NULL,
  turn bigint NOT NULL DEFAULT nextval('turn_numbers'),
  PRIMARY KEY (owner, thread_id),
  FOREIGN KEY (owner, thread_id) REFERENCES threads ON DELETE CASCADE
) WITH (fillfactor = 50);
CREATE INDEX turns_by_tenant ON turns (tenant, due, turn);
CREATE TABLE served (tenant text COLLATE "C" PRIMARY KEY, at bigint NOT NULL, turn bigint NOT NULL);

CREATE TABLE staged (
  owner text COLLATE "C" NOT NULL,
  thread_id text COLLATE "C" NOT NULL,
  token text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  body text NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (owner, thread_id, token, id)
);
CREATE INDEX staged_by_time ON staged (at);

${quotaTables(TYPES)}
CREATE TABLE rates (name text COLLATE "C" PRIMARY KEY, ends double precision NOT NULL);
`;

/**
 * Increase `readableFrom` only when this version stops writing data that the old version reads, or relies on data that
 * the old version does not write. See CONTRIBUTING.md.
 */
const FORMAT: Format = { version: 1, readableFrom: 1 };

/**
 * The oldest supported major version of PostgreSQL. The statements need version 11 for `hashtextextended`. Version 12
 * is the first that plans a read-only `WITH` together with the rest of its statement, as in the claim of due threads.
 */
export const OLDEST_VERSION = 12;

/**
 * Creates the tables in an empty schema, one process at a time, and records the format. Throws `unavailable` for a
 * database whose format this process cannot use, and leaves it unchanged.
 */
export async function prepareSchema(client: ClientBase, deadlineMs: number): Promise<void> {
  // A starting process is busy, and no thread waits for this transaction, so the transaction can be idle for longer
  // than others.
  await client.query(`BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${deadlineMs}`);
  try {
    await client.query("SELECT pg_advisory_xact_lock($1)", [lockNumber("schema")]);
    const tables = await tablesIn(client);
    if (tables.size === 0) await makeTables(client);
    else await joinDatabase(client, tables);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

const WITHOUT_FORMAT =
  "The schema `skein` of the PostgreSQL database contains tables of another program, or lacks tables of Skein's format. Use another database, or drop the schema if it is not needed: DROP SCHEMA skein CASCADE.";
const OURS = [...TABLES.matchAll(/CREATE TABLE (\w+)/g)].map(([, name = ""]) => name);

async function tablesIn(client: ClientBase): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'skein'",
  );
  return new Set(rows.map(({ name }) => name));
}

async function makeTables(client: ClientBase): Promise<void> {
  await createSchema(client);
  const { version, readableFrom } = FORMAT;
  await client.query(
    `SET LOCAL search_path = skein; ${TABLES} INSERT INTO format VALUES (${version}, ${readableFrom})`,
  );
}

async function joinDatabase(client: ClientBase, tables: ReadonlySet<string>): Promise<void> {
  const found = await formatOf(client, tables);
  const { version, readableFrom } = join("The PostgreSQL database", found, FORMAT);
  if (!OURS.every((name) => tables.has(name))) throw new AppError("unavailable", WITHOUT_FORMAT);
  if (version !== found.version || readableFrom !== found.readableFrom)
    await client.query("UPDATE skein.format SET version = $1, readable_from = $2", [version, readableFrom]);
}

async function formatOf(client: ClientBase, tables: ReadonlySet<string>): Promise<Format> {
  if (!tables.has("format")) throw new AppError("unavailable", WITHOUT_FORMAT);
  const { rows } = await client.query<Format>(
    `SELECT version, readable_from AS "readableFrom" FROM skein.format`,
  );
  const [format] = rows;
  if (!format) throw new AppError("unavailable", WITHOUT_FORMAT);
  return format;
}

/** Throws `unavailable` if there are no tables, or if this version cannot read them. Changes nothing. */
export async function assertFormat(client: ClientBase): Promise<void> {
  const tables = await tablesIn(client);
  if (tables.size === 0)
    throw new AppError("unavailable", "The PostgreSQL database contains no Skein tables.");
  join("The PostgreSQL database", await formatOf(client, tables), FORMAT);
}

/**
 * Creates the schema unless it exists. If another user has created it, the server's user needs no privileges on the
 * database.
 */
async function createSchema(client: ClientBase): Promise<void> {
  const { rows } = await client.query(
    "SELECT to_regnamespace('skein') IS NOT NULL AS is_there, current_user AS name, current_database() AS database",
  );
  const { is_there, name, database } = rows[0] ?? {};
  if (is_there) return;
  await client.query("CREATE SCHEMA skein").catch((cause: unknown) => {
    if ((cause as { code?: unknown }).code !== NOT_ALLOWED) throw cause;
    throw new AppError(
      "config_invalid",
      `PostgreSQL's user \`${name}\` may not create a schema in database \`${database}\`. Let its owner run: CREATE SCHEMA skein AUTHORIZATION "${name}"`,
      { cause },
    );
  });
}

const NOT_ALLOWED = "42501";
