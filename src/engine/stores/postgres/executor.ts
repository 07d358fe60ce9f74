// Executes statements of `sql/`: all reads of a change in one round trip, and all writes in another.

import type { Executor, RowsOf } from "../sql/executor.ts";
import type { Database } from "./database.ts";

/** Changes with the same `lock` run one after the other, and begin with `settings`. */
export function executorOn(database: Database, lock: readonly string[], settings?: string): Executor {
  return {
    clock: () => database.clock(),
    read: ({ sql, values }) => database.query(sql, values),
    write: async ({ sql, values }) => void (await database.query(sql, values)),
    change: (asked, decide) =>
      database.transaction(lock, async (tx) => {
        if (settings !== undefined) void tx.rows(settings);
        const rows = asked.map((statement) => (statement ? tx.rows(statement.sql, statement.values) : []));
        // The rows are in the order of the statements.
        const { writes, result } = decide((await Promise.all(rows)) as RowsOf<typeof asked>);
        for (const { sql, values } of writes) tx.write(sql, values);
        return result;
      }),
  };
}
