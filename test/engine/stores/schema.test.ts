// The one description of the tables, compared with what both databases have made of it.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect } from "vitest";
import { createPostgresStores } from "../../../src/engine/stores/postgres/index.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { needing } from "../../support/needing.ts";
import { startPostgres } from "../../support/postgres.ts";
import { temporaryFolder } from "../../support/server.ts";

interface Column {
  readonly of: string;
  readonly name: string;
  readonly type: string;
  readonly is_required: boolean | number;
}
interface Index {
  readonly of: string;
  readonly name: string;
  readonly columns: string;
  readonly is_unique: boolean | number;
}

/** What only one of the two has. */
const OWN = new Set([
  ...["tail", "threads.status", "threads.staged", "threads.cut", "runs.stop", "runs.released"],
  ...["format", "shared", "commits", "turns", "served", "staged", "rates"],
  ...["runs.last_seq", "runs.epochs", "deferred_calls.tenant"],
  ...["one_running", "runs_waiting", "threads_staged", "threads_cut", "stored_by_end"],
  ...["commits_by_time", "turns_by_tenant", "staged_by_time"],
]);
const KINDS: Readonly<Record<string, string>> = {
  ...{ TEXT: "text", INTEGER: "whole", REAL: "real" },
  ...{ text: "text", bigint: "whole", integer: "whole", boolean: "whole", "double precision": "real" },
};

const postgres = await startPostgres();
afterAll(() => postgres?.close());

needing(postgres, "postgres").test(
  "SQLite and PostgreSQL have the same tables, columns, keys and indexes, except for their own",
  async () => {
    const dir = await temporaryFolder();
    await createSqliteStores({ dataDir: dir }).close();
    await (await createPostgresStores({ url: postgres?.url ?? "", pool: 2 })).close();
    const ours = [...inFile(join(dir, "skein.db")), ...inFile(join(dir, "usage.db"))].sort();
    expect(ours.length).toBeGreaterThan(100);
    expect(ours).toEqual((await inPostgres()).sort());
  },
);

function inFile(path: string): string[] {
  const file = new DatabaseSync(path, { readOnly: true });
  const columns = file
    .prepare(`
      SELECT m.name AS "of", c.name, c.type, c."notnull" AS is_required
      FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'`)
    .all();
  const indexes = file
    .prepare(`
      SELECT m.name AS "of", i.name, i."unique" AS is_unique,
        (SELECT group_concat(name) FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno)) AS columns
      FROM sqlite_schema AS m, pragma_index_list(m.name) AS i WHERE m.type = 'table'`)
    .all();
  file.close();
  // The statements say what they return.
  return linesOf(columns as unknown as Column[], indexes as unknown as Index[]);
}

async function inPostgres(): Promise<string[]> {
  const ask = async (sql: string) => (await postgres?.ask(postgres.url, sql)) ?? [];
  const columns = await ask(`
    SELECT table_name AS "of", column_name AS name, data_type AS type, is_nullable = 'NO' AS is_required
    FROM information_schema.columns WHERE table_schema = 'skein'`);
  const indexes = await ask(`
    SELECT t.relname AS "of", c.relname AS name, i.indisunique AS is_unique, (
      SELECT string_agg(a.attname, ',' ORDER BY k.at) FROM unnest(i.indkey) WITH ORDINALITY AS k (number, at)
      JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.number) AS columns
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_class AS t ON t.oid = i.indrelid
    WHERE t.relnamespace = 'skein'::regnamespace`);
  return linesOf(columns as unknown as Column[], indexes as unknown as Index[]);
}

/** Without the names of indexes, which keys have as well. */
function linesOf(columns: readonly Column[], indexes: readonly Index[]): string[] {
  return [
    ...columns
      .filter(({ of, name }) => !OWN.has(of) && !OWN.has(`${of}.${name}`))
      .map(({ of, name, type, is_required }) =>
        [of, name, KINDS[type] ?? type, is_required ? "required" : "optional"].join(" "),
      ),
    ...indexes
      .filter(({ of, name }) => !OWN.has(of) && !OWN.has(name))
      .map(({ of, columns: parts, is_unique }) => `${of} (${parts})${is_unique ? " unique" : ""}`),
  ];
}
