// Defines how statements are executed. Reads and writes are data. SQLite executes all of them in one tick of the event
// loop. PostgreSQL takes two round trips: one for all reads, and one for all writes.

/** A value for one parameter. An array is for `Dialect.among`. */
export type Value = string | number | null | readonly string[];

/** A statement that returns rows of type `Row`. */
export interface Statement<Row = unknown> {
  readonly sql: string;
  readonly values: readonly Value[];
  /** Never set. Exists only as a type. */
  readonly row?: Row;
}

/** The rows of each statement. Empty for an undefined one. */
export type RowsOf<A extends StatementBatch> = {
  [At in keyof A]: A[At] extends Statement<infer Row> | undefined ? Row[] : never;
};

/** Statements that are sent together. */
export type StatementBatch = readonly (Statement | undefined)[];

export interface Decision<T> {
  readonly writes: readonly Statement[];
  readonly result: T;
}

/** Returns the writes for the rows. It must not wait, and may be called again. */
export type Decide<A extends StatementBatch, T> = (rows: RowsOf<A>) => Decision<T>;

export interface Executor {
  /** The parameter of `Dialect.time`. Null means the database's own clock. */
  clock(): number | null;
  /** Returns the rows of one read-only statement. Throws `unavailable`. */
  read<Row>(statement: Statement<Row>): Promise<Row[]>;
  /** Executes one statement that is safe to repeat. Throws `unavailable`. */
  write(statement: Statement): Promise<void>;
  /** Writes what `decide` returns for the rows of `asked`, or nothing if it throws. Throws `unavailable`. */
  change<const A extends StatementBatch, T>(asked: A, decide: Decide<A, T>): Promise<T>;
}
