// Defines how statements are executed. Reads and writes are described by data, so that each database can execute them
// in its own way. SQLite executes all of them in one tick of the event loop. PostgreSQL needs two round trips: one for
// all reads and one for all writes.

/** The value of a parameter. Arrays are for `SqlDialect.among`. */
export type Value = string | number | null | readonly string[];

/** A statement that returns rows of type `Row`. */
export interface Statement<Row = unknown> {
  readonly sql: string;
  readonly values: readonly Value[];
  /** Never set. Exists only in the type. */
  readonly row?: Row;
}

/** The rows of each statement. Empty for an undefined statement. */
export type RowsOf<A extends StatementBatch> = {
  [At in keyof A]: A[At] extends Statement<infer Row> | undefined ? Row[] : never;
};

/** Statements that are sent together. */
export type StatementBatch = readonly (Statement | undefined)[];

export interface SqlDecision<T> {
  readonly writes: readonly Statement[];
  readonly result: T;
}

/** Returns the writes for the rows. Must not wait, and may be called again. */
export type Decide<A extends StatementBatch, T> = (rows: RowsOf<A>) => SqlDecision<T>;

export interface Executor {
  /** The parameter for `SqlDialect.time`. Null means the database's own clock. */
  clock(): number | null;
  /** Returns the rows of one read-only statement. Throws `unavailable`. */
  read<Row>(statement: Statement<Row>): Promise<Row[]>;
  /** Executes one statement that is safe to repeat. Throws `unavailable`. */
  write(statement: Statement): Promise<void>;
  /** Writes what `decide` returns for the rows of `asked`. If `decide` throws, writes nothing. Throws `unavailable`. */
  change<const A extends StatementBatch, T>(asked: A, decide: Decide<A, T>): Promise<T>;
}
