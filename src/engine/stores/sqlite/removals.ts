// Deletes potentially large data: the rows of whole threads, and all messages of a thread from a position on. Each
// transaction deletes one slice, so that the event loop can do other work between the transactions.
//
// The first transaction marks the data that it cannot delete itself: it hides a thread from every query, or records the
// position from which messages are removed. A request for such a thread waits until the deletion is complete. The next
// process completes unfinished deletions.

import type { SQLInputValue } from "node:sqlite";
import { ownTick } from "../../../lib/ticks.ts";
import { storeClosed } from "../errors.ts";
import { fitting, SLICE_ROWS } from "../page.ts";
import { ownerOf, type ThreadKey, threadText } from "../row-keys.ts";
import type { AfterCommit, Database } from "./database.ts";

/** The maximum size in bytes of text to delete in one transaction. A single row may be larger. */
const SLICE_BYTES = 512 * 1024;

const THREAD = "owner = ? AND thread_id = ?";

/** The value of `threads.staged` for a thread that is being deleted. No copy has this token. */
export const DELETED = "";

export interface Removals {
  /** Deletes a free thread that has no data left from an earlier deletion. Call this within a transaction. */
  removeThread(thread: ThreadKey, room: Room, afterCommit: AfterCommit): void;
  /**
   * Removes the messages from a position on. The thread must have no data left from an earlier deletion. Call this
   * within a transaction.
   */
  removeMessages(thread: ThreadKey, from: number, afterCommit: AfterCommit): void;
  /** Resolves when all removed data of the thread is deleted. Returns undefined if nothing remains. Throws `unavailable`. */
  of(thread: ThreadKey): Promise<void> | undefined;
  /** Resolves when no thread has data left to delete. Throws `unavailable`. */
  all(): Promise<void>;
  /** Continues the deletions that an earlier process did not complete. */
  start(): void;
  /** Waiting callers get `unavailable`. */
  stop(): void;
}

/** The number of rows and bytes that a transaction can still delete. */
export interface Room {
  rows: number;
  bytes: number;
}

export const slice = (): Room => ({ rows: SLICE_ROWS, bytes: SLICE_BYTES });

interface Removal {
  readonly thread: ThreadKey;
  /** The position of the first message to remove. Undefined for the whole thread. */
  readonly from: number | undefined;
  readonly done: PromiseWithResolvers<void>;
}

export function createRemovals(database: Database): Removals {
  const of = (table: string, key: PartOptions["key"], text: string) =>
    createPart(database, { table, where: THREAD, key, text });
  // Rows that refer to other rows are deleted before those rows.
  const parts = [
    of("events", ["run_id", "last_seq"], "body"),
    of("inbox", ["run_id", "number"], "body"),
    of("runs", ["number"], "request"),
    of("messages", ["position"], "body"),
    of("state", ["key"], "value"),
    of("deferred_calls", ["call_id"], "reply"),
    of("documents", ["rowid"], "body"),
  ];
  const messagesFrom = createPart(database, {
    table: "messages",
    where: `${THREAD} AND position >= ?`,
    key: ["position"],
    text: "body",
  });
  const hide = database.query(
    `UPDATE threads SET staged = '${DELETED}', status = 'busy' WHERE owner = ? AND id = ?`,
  );
  const dropThread = database.query("DELETE FROM threads WHERE owner = ? AND id = ?");
  const setCut = database.query("UPDATE threads SET cut = ? WHERE owner = ? AND id = ?");
  const selectLeft = database.query<{ owner: string; id: string; cut: number | null }>(`
    SELECT owner, id, NULL AS cut FROM threads WHERE staged IS NOT NULL
    UNION ALL SELECT owner, id, cut FROM threads WHERE cut IS NOT NULL AND staged IS NULL`);

  const left = new Map<string, Removal>();
  let isRunning = false;
  let isStopped = false;

  return {
    removeThread(thread, room, afterCommit) {
      if (finish(thread, undefined, room)) return;
      hide.run(...thread);
      afterCommit(() => add(thread, undefined));
    },

    removeMessages(thread, from, afterCommit) {
      if (finish(thread, from, slice())) return;
      setCut.run(from, ...thread);
      afterCommit(() => add(thread, from));
    },

    of(thread) {
      // Usually, nothing remains.
      const removal = left.size === 0 ? undefined : left.get(threadText(thread));
      if (removal) run();
      return removal?.done.promise;
    },

    async all() {
      run();
      await Promise.all([...left.values()].map(({ done }) => done.promise));
    },

    start() {
      for (const { owner, id, cut } of selectLeft.all()) add([owner, id], cut ?? undefined);
    },

    stop() {
      isStopped = true;
      fail(storeClosed());
    },
  };

  /** Deletes as much as `room` allows. Returns true if nothing is left. */
  function finish(thread: ThreadKey, from: number | undefined, room: Room): boolean {
    if (from !== undefined) return messagesFrom([...thread, from], room);
    const isGone = parts.every((part) => part(thread, room));
    if (isGone) dropThread.run(...thread);
    return isGone;
  }

  function add(thread: ThreadKey, from: number | undefined): void {
    left.set(threadText(thread), newRemoval(thread, from));
    run();
  }

  function run(): void {
    if (isRunning || isStopped || left.size === 0) return;
    isRunning = true;
    removeAll().catch(fail);
  }

  async function removeAll(): Promise<void> {
    for (let [first] = left.values(); first; [first] = left.values()) {
      await ownTick(ownerOf(first.thread[0]).tenant);
      if (isStopped) return;
      for (const [text, { done }] of database.write(removeSome)) {
        left.delete(text);
        done.resolve();
      }
    }
    isRunning = false;
  }

  /** Deletes one slice from as many threads as possible. Returns the threads that are completely deleted. */
  function removeSome(): (readonly [string, Removal])[] {
    const room = slice();
    const done = [];
    for (const entry of left) {
      const [text, removal] = entry;
      const { thread, from } = removal;
      if (!finish(thread, from, room)) {
        // Other threads get their turns before this one continues.
        left.delete(text);
        left.set(text, removal);
        break;
      }
      if (from !== undefined) setCut.run(null, ...thread);
      done.push(entry);
    }
    return done;
  }

  /** The rest is deleted at the next request for the thread. */
  function fail(error: unknown): void {
    isRunning = false;
    for (const [text, { thread, from, done }] of left) {
      done.reject(error);
      if (isStopped) left.delete(text);
      else left.set(text, newRemoval(thread, from));
    }
  }
}

function newRemoval(thread: ThreadKey, from: number | undefined): Removal {
  const done = Promise.withResolvers<void>();
  done.promise.catch(() => {}); // often there is no caller waiting
  return { thread, from, done };
}

interface PartOptions {
  readonly table: string;
  /** Takes the owner and the thread as the first parameters. */
  readonly where: string;
  /** The column after the owner and the thread in an index. Rows are deleted in the order of this column. */
  readonly key: readonly string[];
  /** The column that can be long. */
  readonly text: string;
}

/** Deletes as many rows as `room` allows. Returns true if no rows are left. */
type Part = (values: readonly SQLInputValue[], room: Room) => boolean;

function createPart(database: Database, { table, where, key, text }: PartOptions): Part {
  const columns = key.join(", ");
  const select = database.query<Record<string, SQLInputValue> & { bytes: number }>(`
    SELECT ${columns}, coalesce(octet_length(${text}), 0) AS bytes FROM ${table}
    WHERE ${where} ORDER BY ${columns} LIMIT ?`);
  const remove = database.query(
    `DELETE FROM ${table} WHERE ${where} AND (${columns}) <= (${key.map(() => "?").join(", ")})`,
  );

  return (values, room) => {
    const rows = select.all(...values, room.rows + 1);
    const taken = fitting(rows.slice(0, room.rows), room.bytes);
    const last = rows[taken - 1];
    if (!last) return rows.length === 0;
    remove.run(...values, ...key.map((column) => last[column] ?? null));
    for (const { bytes } of rows.slice(0, taken)) room.bytes -= bytes;
    room.rows = room.bytes > 0 ? room.rows - taken : 0;
    return taken === rows.length;
  };
}
