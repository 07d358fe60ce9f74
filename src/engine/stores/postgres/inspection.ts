// Reads the tables in one read-only transaction, so all data is as of the start of the transaction.

import { AppError } from "../../../agent/core/errors.ts";
import type { Inspection } from "../check/facts.ts";
import { type Ask, type CheckDialect, sqlDue, sqlSums, sqlThreads } from "../check/sql.ts";
import { newClient, placeOf } from "./client.ts";
import { assertFormat } from "./schema.ts";

const DEADLINE_MS = 10_000;

const DIALECT: CheckDialect = {
  threads: "SELECT owner, id FROM threads WHERE (owner, id) > (?1, ?2) ORDER BY owner, id LIMIT ?3",
  thread: `SELECT CASE WHEN turns.owner IS NULL THEN outcome ELSE 'busy' END AS status, message_count, bytes, updated_at,
      run_id AS active, last_seq AS last, turns.owner IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM runs WHERE runs.owner = ?1 AND runs.thread_id = ?2 AND status IN ('running', 'pending')) AS is_found
    FROM threads LEFT JOIN turns ON turns.owner = threads.owner AND turns.thread_id = threads.id
    WHERE threads.owner = ?1 AND id = ?2`,
  // PostgreSQL cannot parse JSON with NUL characters or unpaired surrogates.
  callsOf: String.raw`CASE WHEN body ~ '\\u(0000|d[89a-f])' THEN body ELSE
    (SELECT json_agg(each.call->'id')::text FROM json_array_elements(body::json->'tool_calls') AS each(call)) END`,
  cut: "9000000000000000",
  isDense: false,
  text: (value) => JSON.stringify(value),
  callId: (stored) => JSON.parse(stored) as string,
};

/** Throws `unavailable` if PostgreSQL cannot be read or has no tables of this version. */
export async function inspectPostgres(url: string, { eventsMs }: { eventsMs: number }): Promise<Inspection> {
  const client = newClient({ url, pool: 1, deadlineMs: DEADLINE_MS, silenceMs: 0 });
  const ask: Ask = async <Row>(sql: string, values: readonly (string | number)[] = []) => {
    const { rows } = await client.query(sql.replaceAll(/\?(\d)/g, "$$$1"), [...values]);
    return rows as Row[];
  };
  try {
    await client.connect();
    await client.query(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = skein;
      SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0`);
    await assertFormat(client);
    const [row] = await ask<{ now: number }>("SELECT floor(extract(epoch FROM now()) * 1000)::bigint AS now");
    const now = row?.now ?? Date.now();
    return {
      isOfOneMoment: true,
      ...sqlThreads(ask, DIALECT, { eventsMs, now }),
      // Foreign keys prevent orphaned rows.
      async *remains() {},
      remain: async () => false,
      due: (time) => sqlDue(ask, { time, now }),
      sums: () => sqlSums(ask),
      close: () => client.end(),
    };
  } catch (error) {
    await client.end().catch(() => {});
    if (error instanceof AppError) throw error;
    const why = error instanceof Error ? ` (${error.message})` : "";
    throw new AppError("unavailable", `PostgreSQL at ${placeOf(url)} cannot be read${why}.`, {
      cause: error,
    });
  }
}
