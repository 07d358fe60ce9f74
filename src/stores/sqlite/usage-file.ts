// The file that quotas are kept in, `usage.db`. Any number of processes may have it open at once.

import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { AppError, messageOf } from "../../core/errors.ts";
import { storeClosed } from "../refusals.ts";

/**
 * `tenant` and `user` are the JSON of [tenant] and [tenant, user], `name` is either; `period` is a day or a month.
 * Times are ms since 1970, cost is in millionths.
 */
const SCHEMA = `
CREATE TABLE held (
  thing TEXT NOT NULL, user TEXT NOT NULL, id TEXT NOT NULL, tenant TEXT NOT NULL, ends INTEGER NOT NULL,
  PRIMARY KEY (thing, user, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX held_by_tenant ON held (thing, tenant);
CREATE INDEX held_by_end ON held (ends);
CREATE TABLE reserved (
  id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL,
  tokens INTEGER NOT NULL, cost INTEGER NOT NULL, ends INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE spent (
  name TEXT NOT NULL, period TEXT NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
  PRIMARY KEY (name, period)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
  user TEXT NOT NULL, day TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
  PRIMARY KEY (user, day, agent, model)
) STRICT, WITHOUT ROWID;
`;
const VERSION = 1;

/** How long a process waits for one that is just writing, in ms. */
const BUSY_MS = 2_000;

export interface UsageFile {
  prepare(sql: string): StatementSync;
  /** All that `work` changes, or nothing. It must not wait. Throws `unavailable`. */
  change<T>(work: () => T): T;
  close(): void;
}

/** Makes the file when there is none. Throws `unavailable` when it cannot be used. */
export function openUsageFile(dataDir: string): UsageFile {
  const path = join(dataDir, "usage.db");
  const file = translated(path, () => open(dataDir, path));
  return {
    prepare: (sql) => file.prepare(sql),
    change: (work) => translated(path, () => atOnce(file, work), file),
    close() {
      if (file.isOpen) file.close();
    },
  };
}

function open(dataDir: string, path: string): DatabaseSync {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const file = new DatabaseSync(path, { timeout: BUSY_MS });
  try {
    chmodSync(path, 0o600); // also what the journals beside it are created with
    file.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    atOnce(file, () => {
      const version = Number(file.prepare("PRAGMA user_version").get()?.user_version);
      if (version > VERSION)
        throw new AppError(
          "unavailable",
          `\`${path}\` was written by a newer version of this program. Use that.`,
        );
      if (version === 0) file.exec(`${SCHEMA} PRAGMA user_version = ${VERSION}`);
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

function translated<T>(path: string, work: () => T, file?: DatabaseSync): T {
  try {
    return work();
  } catch (error) {
    if (file && !file.isOpen) throw storeClosed();
    if (error instanceof AppError) throw error;
    throw new AppError("unavailable", `The usage in \`${path}\` cannot be reached: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}
