// Reads the files of a data folder from consistent copies, without opening the files themselves. The server can use the
// files in the meantime and keeps its exclusive locks.

import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { constants, copyFile, mkdtemp, open, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError } from "../../../agent/core/errors.ts";
import type { Inspection } from "../check/facts.ts";
import { type Ask, type CheckDialect, sqlDue, sqlSums, sqlThreads } from "../check/sql.ts";
import { Database, type Query } from "./database.ts";
import { usageIn } from "./quotas.ts";
import { QUOTA_TABLES } from "./schema.ts";
import { openSmallFile } from "./small-file.ts";
import { openTail } from "./tail.ts";

/** The maximum number of attempts. A server that is writing moves its log into the file at most every few seconds. */
const ATTEMPTS = 50;
const PAUSE_MS = 100;
/** The number of milliseconds within which two changes of a file may have the same timestamp. */
const TICK_MS = 20;

const DIALECT: CheckDialect = {
  threads:
    "SELECT owner, id FROM threads WHERE staged IS NULL AND (owner, id) > (?1, ?2) ORDER BY owner, id LIMIT ?3",
  thread:
    "SELECT status, message_count, bytes, updated_at FROM threads WHERE owner = ?1 AND id = ?2 AND staged IS NULL",
  callsOf: `(SELECT json_group_array(json_extract(value, '$.id')) FROM json_each(body, '$.tool_calls'))`,
  cut: "coalesce((SELECT cut FROM threads WHERE owner = ?1 AND id = ?2), 9e15)",
  isDense: true,
  text: (value) => value,
  callId: (stored) => stored,
};

/** Throws `unavailable` if the folder contains no database, or a database that cannot be read. */
export async function inspectSqlite(
  dataDir: string,
  { eventsMs }: { eventsMs: number },
): Promise<Inspection> {
  const path = join(dataDir, "skein.db");
  if (!existsSync(path)) throw new AppError("unavailable", `There is no database \`${path}\`.`);
  const folder = await mkdtemp(join(tmpdir(), "skein-check-"));
  const opened: { close(): void }[] = [];
  const close = async () => {
    for (const each of opened.splice(0)) each.close();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const copy = join(folder, "skein.db");
    await copyOfOneMoment(path, copy);
    const usage = usageIn(dataDir);
    if (existsSync(usage)) await copyOfOneMoment(usage, join(folder, "usage.db"));
    const database = new Database(copy);
    opened.push(database);
    // The last events may not be in their logs yet.
    openTail(database);
    const quotas = openSmallFile({
      path: join(folder, "usage.db"),
      content: "The usage",
      pragmas: "",
      tables: QUOTA_TABLES,
    });
    opened.push(quotas);
    return inspection(asking(database), asking(quotas), { eventsMs, close });
  } catch (error) {
    await close();
    throw error;
  }
}

function inspection(
  ask: Ask,
  askQuotas: Ask,
  { eventsMs, close }: { readonly eventsMs: number; close(): Promise<void> },
): Inspection {
  const now = Date.now();
  return {
    isOfOneMoment: true,
    ...sqlThreads(ask, DIALECT, { eventsMs, now }),
    async *remains() {
      for (const each of [ask, askQuotas])
        for (const { quick_check: text } of await each<{ quick_check: string }>("PRAGMA quick_check"))
          if (text !== "ok") yield `SQLite says: ${text}.`;
      for (const row of await ask<{ table: string; parent: string }>("PRAGMA foreign_key_check"))
        yield `A row of \`${row.table}\` refers to a row of \`${row.parent}\` that does not exist.`;
    },
    remain: async () => true,
    due: (time) => sqlDue(ask, { time, now }),
    sums: () => sqlSums(askQuotas),
    close,
  };
}

/** Prepares each statement once. */
function asking(database: Pick<Database, "query" | "read">): Ask {
  const queries = new Map<string, Query<unknown>>();
  return async <Row>(sql: string, values: readonly (string | number)[] = []) => {
    const query = queries.get(sql) ?? database.query(sql);
    queries.set(sql, query);
    return database.read(() => query.all(...values)) as Row[];
  };
}

/**
 * Copies a file and its write-ahead log. Only a checkpoint changes the file, and only a restarted log changes earlier
 * parts of the log. If neither happens during a copy, the copy is consistent. SQLite ignores partly written data.
 */
async function copyOfOneMoment(path: string, copy: string): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = await stateOf(path);
    await rm(`${copy}-wal`, { force: true });
    // `copyFile` never ends if its source gets shorter, as a log does that a checkpoint truncates.
    if (before.log !== "") await pipeline(createReadStream(`${path}-wal`), createWriteStream(`${copy}-wal`));
    await copyFile(path, copy, constants.COPYFILE_FICLONE);
    const after = await stateOf(path);
    if (after.file === before.file && after.log === before.log && !before.isFresh) return;
    await sleep(PAUSE_MS);
  }
  throw new AppError(
    "unavailable",
    `\`${path}\` changed during each of ${ATTEMPTS} copies. Check a backup, or stop the server.`,
  );
}

/** Returns the parts that a checkpoint changes, and the header of the log, which identifies each restart. */
async function stateOf(path: string) {
  const { mtimeNs, size } = await stat(path, { bigint: true });
  const isFresh = Date.now() - Number(mtimeNs / 1_000_000n) < TICK_MS;
  return { file: `${mtimeNs} ${size}`, log: await headOf(`${path}-wal`), isFresh };
}

const LOG_HEAD = 32;

/** Empty if there is no log. */
async function headOf(path: string): Promise<string> {
  if (!existsSync(path)) return "";
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LOG_HEAD), 0, LOG_HEAD, 0);
    return buffer.subarray(0, bytesRead).toString("hex");
  } finally {
    await file.close();
  }
}
