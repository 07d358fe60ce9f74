// The differences between the SQL of SQLite and of PostgreSQL. The statements in `sql/` work in both databases and use
// these parts. Parameters are written as `$1`, `$2` and so on; SQLite's executor prepares them as `?1`, `?2` and so on.

export interface SqlDialect {
  /** A condition: `column` has one of the values of parameter `n`, which is an array of texts. */
  among(column: string, n: number): string;
  /**
   * The time in milliseconds. Parameter `n` is the executor's `clock()`. The database reads the time only once per
   * statement, so it can use an index for a comparison.
   */
  time(n: number): string;
  /** A condition: no messages are being copied into the thread. PostgreSQL stores such messages in a separate table. */
  readonly isWhole: string;
  /** The status of a thread: `busy` or its last run's outcome. */
  readonly status: string;
  /**
   * Encodes a text that a user chose for its column. PostgreSQL's columns contain JSON, because they do not accept NUL
   * characters.
   */
  chosen(text: string): string;
  /** Decodes a text that a user chose from its column. */
  plain(stored: string): string;
  /** Folds a title, or part of one, for searches. Neither database folds non-ASCII characters in every locale. */
  folded(text: string | undefined): string | null;
  /**
   * The end of a SELECT. Prevents other transactions from deleting the row before this one ends. SQLite has no other
   * transactions.
   */
  readonly keepsRow: string;
  /**
   * The end of a SELECT. Prevents other transactions from changing its rows of `document_turns` before this one ends.
   */
  readonly locksSchedule: string;
}

export const SQLITE: SqlDialect = {
  among: (column, n) => `${column} IN (SELECT value FROM json_each($${n}))`,
  time: (n) => `$${n}`,
  isWhole: "staged IS NULL",
  status: "status",
  chosen: (text) => text,
  plain: (stored) => stored,
  folded: (text) => text?.toLowerCase() ?? null,
  keepsRow: "",
  locksSchedule: "",
};

export const POSTGRES: SqlDialect = {
  among: (column, n) => `${column} = ANY ($${n}::text[])`,
  time: (n) =>
    `(SELECT coalesce($${n}::float8::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))`,
  isWhole: "true",
  status: `CASE WHEN EXISTS (
    SELECT 1 FROM turns WHERE turns.owner = threads.owner AND turns.thread_id = threads.id) THEN 'busy' ELSE outcome END`,
  chosen: (text) => JSON.stringify(text),
  // Not validated, because only `chosen` creates these.
  plain: (stored) => JSON.parse(stored) as string,
  folded: (text) => text?.toLowerCase().replaceAll("\0", "\ufffd").toWellFormed() ?? null,
  keepsRow: "FOR KEY SHARE",
  locksSchedule: "FOR UPDATE OF document_turns",
};
