// Executes statements of `sql/` on a file. All statements of a change run in one tick of the event loop.

import type { SQLInputValue } from "node:sqlite";
import type { Decide, Executor, RowsOf, Statement, StatementBatch, Value } from "../sql/executor.ts";
import type { Query } from "./database.ts";
import type { SmallFile } from "./small-file.ts";

/** An `Executor` that does not wait. */
export interface TickExecutor {
  read<Row>(statement: Statement<Row>): Row[];
  write(statement: Statement): void;
  /** Like `read`, within a change of the file. */
  ask<Row>(statement: Statement<Row>): Row[];
  run(statement: Statement): void;
  change<const A extends StatementBatch, T>(asked: A, decide: Decide<A, T>): T;
}

/** Prepares statements on first use and keeps them. */
export function tickExecutor(file: Pick<SmallFile, "query" | "read" | "write">): TickExecutor {
  const prepared = new Map<string, Query<unknown>>();

  return {
    ask: rowsOf,
    run,
    read: (statement) => file.read(() => rowsOf(statement)),
    write: (statement) => file.write(() => run(statement)),
    change: (asked, decide) =>
      file.write(() => {
        const rows = asked.map((statement) => (statement ? rowsOf(statement) : []));
        // The rows are in the order of the statements.
        const { writes, result } = decide(rows as RowsOf<typeof asked>);
        for (const statement of writes) run(statement);
        return result;
      }),
  };

  function run({ sql, values }: Statement): void {
    queryOf(sql).run(...values.map(inputOf));
  }

  function rowsOf<Row>({ sql, values }: Statement<Row>): Row[] {
    // The statement defines what it returns.
    return queryOf(sql).all(...values.map(inputOf)) as Row[];
  }

  function queryOf(sql: string): Query<unknown> {
    const known = prepared.get(sql);
    if (known) return known;
    const query = file.query<unknown>(sql.replace(/\$(?=\d)/g, "?"));
    prepared.set(sql, query);
    return query;
  }
}

/** Every call runs in its own tick. */
export function executorOf(executor: TickExecutor, clock: () => number): Executor {
  return {
    clock,
    read: async (statement) => executor.read(statement),
    write: async (statement) => executor.write(statement),
    change: async (asked, decide) => executor.change(asked, decide),
  };
}

const inputOf = (value: Value): SQLInputValue =>
  typeof value === "object" && value !== null ? JSON.stringify(value) : value;
