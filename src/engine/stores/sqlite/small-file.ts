// A file next to the threads' file. Any number of processes can open it at once.

import { chmodSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { AppError, messageOf } from "../../../agent/core/errors.ts";
import { storeClosed } from "../errors.ts";
import { type Database, type Query, queryOf } from "./database.ts";
import { loadSqlite } from "./node-sqlite.ts";
import { checkTables, prepareTables } from "./schema.ts";

/** The number of milliseconds for which a process waits while another process is writing. */
const BUSY_MS = 2_000;

interface SmallFileOptions {
  /** The path of the file, or `:memory:` to keep the data only in memory. */
  readonly path: string;
  /** The name of the file's content for error messages, for example `The API keys`. */
  readonly content: string;
  /** SQL to run whenever the file is opened. */
  readonly pragmas: string;
  /** SQL that creates the tables. */
  readonly tables: string;
}

/** Reports errors with the file itself as `unavailable`. */
export interface SmallFile extends Pick<Database, "query" | "read"> {
  /** Commits all changes made by `work`, or none. `work` must not wait. */
  write<T>(work: () => T): T;
  close(): void;
}

/** Creates the file if it is missing. Throws `unavailable` if it cannot be used. */
export function openSmallFile(options: SmallFileOptions): SmallFile {
  const file = translated(options, () => open(options));
  const transactions = transactionsOf(file);
  return {
    query: <Row>(sql: string): Query<Row> => translated(options, () => queryOf<Row>(file, sql)),
    read: (work) => translated(options, work, file),
    write: (work) => translated(options, () => atOnce(file, work, transactions), file),
    close() {
      if (file.isOpen) file.close();
    },
  };
}

function open({ path, pragmas, tables }: SmallFileOptions): DatabaseSync {
  if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = new (loadSqlite().DatabaseSync)(path, { timeout: BUSY_MS });
  try {
    checkTables(file, path, tables);
    if (path !== ":memory:") chmodSync(path, 0o600); // SQLite creates the journals with the same mode
    file.exec(pragmas);
    atOnce(file, () => prepareTables(file, path, tables));
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

const transactionsOf = (file: DatabaseSync) => ({
  begin: file.prepare("BEGIN IMMEDIATE"),
  commit: file.prepare("COMMIT"),
});

/** If two processes do this at once, the second one waits. */
function atOnce<T>(
  file: DatabaseSync,
  work: () => T,
  { begin, commit }: ReturnType<typeof transactionsOf> = transactionsOf(file),
): T {
  begin.run();
  try {
    const result = work();
    commit.run();
    return result;
  } catch (error) {
    // Some failures have already ended the transaction.
    if (file.isOpen && file.isTransaction) file.exec("ROLLBACK");
    throw error;
  }
}

function translated<T>({ path, content }: SmallFileOptions, work: () => T, file?: DatabaseSync): T {
  if (file && !file.isOpen) throw storeClosed();
  try {
    return work();
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError("unavailable", `${content} in \`${path}\` cannot be reached: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}
