// A file of its own for what is no thread's. Unlike the file of threads any number of processes may have it open at once.

import { chmodSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { AppError, messageOf } from "../../core/errors.ts";
import { storeClosed } from "../refusals.ts";

const VERSION = 1;

/** How long a process waits for one that is just writing, in ms. */
const BUSY_MS = 2_000;

interface SmallFileOptions {
  readonly path: string;
  /** What is in it, for the words of errors: `The API keys`. */
  readonly content: string;
  /** SQL that every opening begins with. */
  readonly pragmas: string;
  /** SQL that makes the tables. */
  readonly schema: string;
}

export interface SmallFile {
  prepare(sql: string): StatementSync;
  /** What `work` returns. Here as everywhere what the file itself throws becomes `unavailable`. */
  ask<T>(work: () => T): T;
  /** All that `work` changes, or nothing. It must not wait. */
  change<T>(work: () => T): T;
  close(): void;
}

/** Makes the file when there is none. Throws `unavailable` when it cannot be used. */
export function openSmallFile(options: SmallFileOptions): SmallFile {
  const file = translated(options, () => open(options));
  return {
    prepare: (sql) => translated(options, () => file.prepare(sql), file),
    ask: (work) => translated(options, work, file),
    change: (work) => translated(options, () => atOnce(file, work), file),
    close() {
      if (file.isOpen) file.close();
    },
  };
}

function open({ path, pragmas, schema }: SmallFileOptions): DatabaseSync {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = new DatabaseSync(path, { timeout: BUSY_MS });
  try {
    chmodSync(path, 0o600); // also what the journals beside it are created with
    file.exec(pragmas);
    atOnce(file, () => {
      const version = Number(file.prepare("PRAGMA user_version").get()?.user_version);
      if (version > VERSION)
        throw new AppError(
          "unavailable",
          `\`${path}\` was written by a newer version of this program. Use that.`,
        );
      if (version === 0) file.exec(`${schema} PRAGMA user_version = ${VERSION}`);
    });
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

/** All that `work` changes, or nothing. Of two processes the second one waits. */
function atOnce<T>(file: DatabaseSync, work: () => T): T {
  file.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    file.exec("COMMIT");
    return result;
  } catch (error) {
    // Some failures have ended the transaction already.
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
