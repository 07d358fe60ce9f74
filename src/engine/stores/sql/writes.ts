// Writes of a decision that change the same rows in both databases. They are not on the critical path of a run, for
// which each database has its own statements.

import type { ThreadKey } from "../row-keys.ts";
import type { ThreadHead, Write } from "../thread-head.ts";
import type { SqlDialect } from "./dialect.ts";
import type { Statement } from "./executor.ts";

export type SharedWrite = Extract<
  Write,
  { readonly write: "leave_message" | "describe_thread" | "clear_thread" | "drop_call" }
>;

/** Returns the statements for a write. `clear_thread` keeps the messages, and no write changes the thread's times. */
export function sqlWrites(
  dialect: SqlDialect,
): (thread: ThreadKey, head: ThreadHead | undefined, write: SharedWrite) => Statement[] {
  const sql = textsOf(dialect);
  const { chosen, folded } = dialect;

  return (thread, head, write) => {
    switch (write.write) {
      case "leave_message": {
        const { id } = write.message;
        const run = head?.active?.run;
        if (run === undefined) return [];
        return [{ sql: sql.leave, values: [...thread, run, chosen(id), JSON.stringify(write.message)] }];
      }
      case "describe_thread": {
        const { title, metadata, forget = [] } = write;
        const texts = [title === undefined ? null : chosen(title), folded(title)];
        const values = [...thread, ...texts, metadata ? JSON.stringify(metadata) : null];
        const forgotten = { sql: sql.forget, values: [...thread, forget.map(chosen)] };
        return [...(forget.length > 0 ? [forgotten] : []), { sql: sql.describe, values }];
      }
      case "clear_thread":
        return [...sql.clear, sql.reset].map((text) => ({ sql: text, values: thread }));
      case "drop_call":
        return [{ sql: sql.dropCall, values: [...thread, chosen(write.call_id)] }];
    }
  };
}

function textsOf({ among }: SqlDialect) {
  const THREAD = "owner = $1 AND thread_id = $2";

  return {
    leave: `
      INSERT INTO inbox (owner, thread_id, run_id, number, id, body)
      SELECT $1, $2, $3, coalesce(max(number), 0) + 1, $4, $5 FROM inbox WHERE ${THREAD} AND run_id = $3`,
    forget: `DELETE FROM state WHERE ${THREAD} AND ${among("key", 3)}`,
    describe: `
      UPDATE threads SET title = coalesce($3, title), title_folded = coalesce($4, title_folded),
        metadata = coalesce($5, metadata) WHERE owner = $1 AND id = $2`,
    clear: ["state", "deferred_calls", "documents"].map((table) => `DELETE FROM ${table} WHERE ${THREAD}`),
    reset: "UPDATE threads SET message_count = 0, bytes = 0, outcome = 'idle' WHERE owner = $1 AND id = $2",
    dropCall: `DELETE FROM deferred_calls WHERE ${THREAD} AND call_id = $3`,
  };
}
