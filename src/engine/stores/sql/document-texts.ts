// The statements for documents and their turns.

import type { SqlDialect } from "./dialect.ts";

export function documentTexts({ among, time, isWhole, keepsRow }: SqlDialect) {
  const DOCUMENT = "key, version, body";
  const LISTED = `${DOCUMENT}, created_at, updated_at`;
  const IN_COLLECTION = "FROM documents WHERE collection = $1";
  const THREAD = (owner: number) =>
    `SELECT 1 FROM threads WHERE owner = $${owner} AND id = $${owner + 1} AND ${isWhole}`;
  const newestBy = (column: string) =>
    `SELECT ${LISTED} ${IN_COLLECTION} AND (${column}, key) < ($2, $3) ORDER BY ${column} DESC, key DESC LIMIT $4`;
  /** Returns at least one row. */
  const find = (exists: string) => `
    SELECT now, is_there, ${DOCUMENT} FROM (SELECT ${time(3)} AS now, ${exists} AS is_there) AS seen
    LEFT JOIN documents ON collection = $1 AND ${among("key", 2)}`;
  const dueAt = (comparison: string, name: string) =>
    `SELECT * FROM (SELECT ${DOCUMENT} ${IN_COLLECTION} AND due ${comparison} ORDER BY due, key LIMIT $3) AS ${name}`;

  return {
    find: find("true"),
    findOfThread: find(`EXISTS (${THREAD(4)})`),
    list: `SELECT ${DOCUMENT} ${IN_COLLECTION}`,
    due: `${dueAt(`<= ${time(2)}`, "due")} UNION ALL ${dueAt(`> ${time(2)} + CAST($4 AS bigint)`, "ahead")} LIMIT $3`,
    pageBy: {
      key: `SELECT ${LISTED} ${IN_COLLECTION} AND key > $2 AND key < $3 ORDER BY key LIMIT $4`,
      created: newestBy("created_at"),
      updated: newestBy("updated_at"),
    },
    size: `SELECT count(*) AS documents, CAST(coalesce(sum(octet_length(body)), 0) AS bigint) AS bytes ${IN_COLLECTION}`,
    oldest: `SELECT key ${IN_COLLECTION} AND created_at < ${time(2)} - CAST($3 AS bigint) ORDER BY created_at, key LIMIT $4`,
    over: `SELECT key ${IN_COLLECTION} AND (created_at, key) <= (
        SELECT created_at, key ${IN_COLLECTION} ORDER BY created_at DESC, key DESC LIMIT 1 OFFSET $3)
      ORDER BY created_at, key LIMIT $2`,
    keepThread: `${THREAD(1)} ${keepsRow}`,
    versions: `SELECT key, version ${IN_COLLECTION} AND ${among("key", 2)}`,
    count: `SELECT count(*) AS n ${IN_COLLECTION}`,
    otherBytes: `SELECT CAST(coalesce(sum(octet_length(body)), 0) AS bigint) AS n ${IN_COLLECTION} AND NOT ${among("key", 2)}`,
    put: `
      INSERT INTO documents (collection, key, version, body, due, owner, thread_id, created_at, updated_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, ${time(8)}, ${time(8)})
      ON CONFLICT (collection, key) DO UPDATE SET
        version = excluded.version, body = excluded.body, due = excluded.due, updated_at = excluded.updated_at`,
    remove: `DELETE ${IN_COLLECTION} AND ${among("key", 2)}`,
  };
}

export function scheduleTexts({ time, locksSchedule }: SqlDialect) {
  const isDue = (column: string) => `(${column} <= now OR ${column} > now + CAST($4 AS bigint))`;
  // Each subquery ends after a few rows of the index. A single query with OR would sort all due rows.
  const firstDue = (condition: string) => `
        SELECT each.key FROM (SELECT key FROM documents AS each
          WHERE each.collection = turn.collection AND each.due ${condition} ORDER BY each.due, each.key LIMIT $3) AS each`;

  return {
    /** Locks the turns, so no document is added to them before their next time is written. */
    waiting: `
      SELECT turn.collection AS collection, key, version FROM (
        SELECT collection, at, now FROM (SELECT ${time(2)} AS now) AS clock
        JOIN document_turns ON kind = $1 AND ${isDue("at")} ORDER BY at, collection LIMIT $3 ${locksSchedule}) AS turn
      LEFT JOIN documents ON documents.collection = turn.collection AND documents.key IN (
        ${firstDue("<= now")} UNION ALL ${firstDue("> now + CAST($4 AS bigint)")})
      ORDER BY turn.at, turn.collection, due, key`,
    hold: `UPDATE documents SET due = ${time(4)} + CAST($5 AS bigint) WHERE collection = $1 AND key = $2 AND version = $3`,
    add: `
      INSERT INTO document_turns (collection, kind, at)
      SELECT $1, $2, CASE WHEN due > now THEN due ELSE now END
      FROM (SELECT CAST($3 AS bigint) AS due, ${time(4)} AS now) AS first WHERE true
      ON CONFLICT (collection) DO UPDATE SET at =
        CASE WHEN excluded.at < document_turns.at THEN excluded.at ELSE document_turns.at END`,
    end: `
      DELETE FROM document_turns WHERE collection = $1
        AND NOT EXISTS (SELECT 1 FROM documents WHERE collection = $1 AND due IS NOT NULL)`,
    next: `
      UPDATE document_turns SET at = (
        SELECT CASE WHEN first > now THEN CAST(first AS bigint) ELSE now END
        FROM (SELECT ${time(2)} AS now, (
          SELECT due FROM documents WHERE collection = $1 AND due IS NOT NULL ORDER BY due LIMIT 1) AS first) AS clock)
      WHERE collection = $1`,
  };
}
