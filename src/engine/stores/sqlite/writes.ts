// Carries out the writes of a decision as part of a transaction, and stores staged messages.

import { NO_USAGE } from "../../../agent/core/message.ts";
import { threadExists } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import { ownerOf, type ThreadKey, threadText } from "../row-keys.ts";
import { callValues } from "../rows.ts";
import { SQLITE } from "../sql/dialect.ts";
import { type SharedWrite, sqlWrites } from "../sql/writes.ts";
import type { StagedMessages, ThreadHead, Write } from "../thread-head.ts";
import type { After } from "./commit-events.ts";
import type { StoreContext } from "./context.ts";
import { tickExecutor } from "./executor.ts";
import { slice } from "./removals.ts";

const RUN = "owner = ? AND thread_id = ? AND id = ?";

interface Writes extends Pick<Kernel<ThreadKey>, "stage" | "unstage"> {
  /** Returns a promise to wait for before creating a thread whose id a copy is using. The copy is dropped. */
  dropCopy(thread: ThreadKey, writes: readonly Write[]): Promise<void> | undefined;
  /** `head` is the thread's head before the write. */
  carryOut(thread: ThreadKey, head: ThreadHead | undefined, write: Write, at: number, after: After): void;
}

interface SqliteWriteContext extends StoreContext {
  readonly statements: ReturnType<typeof statementsIn>;
  readonly runShared: (thread: ThreadKey, head: ThreadHead | undefined, write: SharedWrite) => void;
  /** The threads into which this process is copying messages. No other process uses the file. */
  readonly copies: Set<string>;
}

export function sqliteWrites(context: StoreContext): Writes {
  const { database, changes, removals } = context;
  const statements = statementsIn(database);
  const executor = tickExecutor(database);
  const statementsOf = sqlWrites(SQLITE);
  const copies = new Set<string>();
  const runShared: SqliteWriteContext["runShared"] = (...write) => {
    for (const statement of statementsOf(...write)) executor.run(statement);
  };
  const writeContext: SqliteWriteContext = { ...context, statements, copies, runShared };

  return {
    async stage(thread, token, messages) {
      for (let rest = removals.of(thread); rest; rest = removals.of(thread)) await rest;
      database.assertOpen();
      // Stored durably together with the thread that is created from the messages.
      database.write(() => {
        statements.insertStaged.run(...thread, token);
        if (!statements.selectStaged.get(...thread, token)) throw threadExists(thread[1]);
        changes.addTexts(thread, messages);
      });
      copies.add(threadText(thread));
    },

    async unstage(thread, token) {
      if (!database.read(() => statements.selectStaged.get(...thread, token))) return;
      await drop(writeContext, thread);
    },

    dropCopy(thread, writes) {
      const [first] = writes;
      if (first?.write !== "create_thread" || isStaged(first)) return undefined;
      return copies.has(threadText(thread)) ? drop(writeContext, thread) : undefined;
    },

    carryOut: (...write) => carryOut(writeContext, ...write),
  };
}

const statementsIn = (database: StoreContext["database"]) => ({
  insertThread: database.query(`
    INSERT INTO threads (owner, id, agent, title, title_folded, metadata, parent, parent_thread, forked_from, status, outcome, message_count, created_at, updated_at, used_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'idle', 'idle', 0, ?10, ?10, ?10)`),
  // Staged messages belong to a thread that is hidden from queries and never expires.
  insertStaged: database.query(`
    INSERT INTO threads (owner, id, metadata, status, outcome, message_count, created_at, updated_at, used_at, staged)
    VALUES (?1, ?2, '{}', 'busy', 'idle', 0, 0, 0, 0, ?3) ON CONFLICT DO NOTHING`),
  selectStaged: database.query<{ message_count: number }>(
    "SELECT message_count FROM threads WHERE owner = ? AND id = ? AND staged = ?",
  ),
  revealStaged: database.query(`
    UPDATE threads SET agent = ?3, title = ?4, title_folded = ?5, metadata = ?6, parent = ?7, parent_thread = ?8,
      forked_from = ?9, status = 'idle', created_at = ?10, updated_at = ?10, used_at = ?10, staged = NULL
    WHERE owner = ?1 AND id = ?2 AND staged IS NOT NULL`),

  insertRun: database.query(`
    INSERT INTO runs (owner, thread_id, id, agent, status, attempt, usage, metadata, idempotency_key, resumes, created_at, request, number)
    SELECT ?1, ?2, ?3, ?4, 'pending', 1, ?5, ?6, ?7, ?8, ?9, ?10, coalesce(max(number), 0) + 1
    FROM runs WHERE owner = ?1 AND thread_id = ?2`),
  makeBusy: database.query(`
    UPDATE threads SET agent = ?1, status = 'busy', updated_at = ?2, used_at = ?2, title = coalesce(title, ?3),
      title_folded = coalesce(title_folded, ?4) WHERE owner = ?5 AND id = ?6`),
  placeLast: database.query(`
    UPDATE runs SET place = 1 + (
      SELECT coalesce(max(place), 0) FROM runs WHERE owner = ?1 AND thread_id = ?2 AND status = 'pending')
    WHERE owner = ?1 AND thread_id = ?2 AND id = ?3`),
  placeFirst: database.query(`
    UPDATE runs SET place = -1 + (
      SELECT coalesce(min(place), 0) FROM runs WHERE owner = ?1 AND thread_id = ?2 AND status = 'pending')
    WHERE owner = ?1 AND thread_id = ?2 AND id = ?3`),
  hold: database.query(`
    UPDATE runs SET status = 'running', attempt = ?1, place = NULL, begun = coalesce(begun, 1 + (
      SELECT coalesce(max(begun), 0) FROM runs WHERE owner = ?2 AND thread_id = ?3 AND begun IS NOT NULL))
    WHERE owner = ?2 AND thread_id = ?3 AND id = ?4`),
  countRelease: database.query(`UPDATE runs SET released = released + 1 WHERE ${RUN}`),
  setStop: database.query(`UPDATE runs SET stop = ? WHERE ${RUN}`),

  putCall: database.query(`
    INSERT INTO deferred_calls (owner, thread_id, call_id, run_id, tool, token_hash, state, reply, expires_at, due_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (owner, thread_id, call_id) DO UPDATE SET
      state = excluded.state, reply = excluded.reply, due_at = excluded.due_at`),
});

async function drop({ database, removals, copies }: SqliteWriteContext, thread: ThreadKey): Promise<void> {
  database.write((afterCommit) => removals.removeThread(thread, slice(), afterCommit));
  copies.delete(threadText(thread));
  await removals.of(thread);
}

function carryOut(
  context: SqliteWriteContext,
  thread: ThreadKey,
  head: ThreadHead | undefined,
  write: Write,
  at: number,
  after: After,
): void {
  const { statements, queue, live, changes, removals, runShared, copies } = context;
  const { afterCommit } = after;
  const keyOf = (run: string) => ({ owner: ownerOf(thread[0]), thread_id: thread[1], run_id: run });
  const active = head?.active;
  switch (write.write) {
    case "create_thread":
      createThread(context, thread, write, at);
      if (isStaged(write)) afterCommit(() => copies.delete(threadText(thread)));
      return;
    case "add_run":
      addRun(context, thread, write, at);
      return;
    case "queue_run":
      (write.front ? statements.placeFirst : statements.placeLast).run(...thread, write.run);
      if (!active) afterCommit(() => queue.putBack(thread));
      return;
    case "hold_run":
      statements.hold.run(write.attempt, ...thread, write.run);
      afterCommit(() => {
        if (write.begins) live.openNew(keyOf(write.run));
        live.hold(keyOf(write.run), write.epoch, active?.stop);
        queue.hold(thread);
      });
      return;
    case "renew_run":
      afterCommit(() => queue.hold(thread));
      return;
    case "release_run": {
      if (!active) return;
      statements.countRelease.run(...thread, active.run);
      afterCommit(() => {
        live.release(keyOf(active.run));
        queue.putBack(thread);
      });
      return;
    }
    case "excuse_run":
      if (active) statements.countRelease.run(...thread, active.run);
      return;
    case "stop_run":
      if (!active) return;
      statements.setStop.run(write.mode, ...thread, active.run);
      afterCommit(() => live.stop(keyOf(active.run), write.mode));
      return;
    case "cancel_run":
      context.commit(live.open(keyOf(write.run)), 1, write.pending, after);
      return;
    case "leave_message":
      if (!active) return;
      runShared(thread, head, write);
      live.open(keyOf(active.run)).mayHaveLeft = true;
      return;
    case "rewind":
      changes.rewind(thread, write.message, afterCommit);
      return;
    case "describe_thread":
      runShared(thread, head, write);
      changes.touchThread(...thread);
      return;
    case "clear_thread":
      runShared(thread, head, write);
      removals.removeMessages(thread, 0, afterCommit);
      changes.touchThread(...thread);
      return;
    case "delete_thread":
      removals.removeThread(thread, slice(), afterCommit);
      return;
    case "put_call":
      statements.putCall.run(...thread, write.call.call_id, ...callValues(write.call), write.due_at ?? null);
      return;
    case "drop_call":
      runShared(thread, head, write);
      return;
  }
}

function createThread(
  { statements, changes }: SqliteWriteContext,
  thread: ThreadKey,
  write: CreateThread,
  at: number,
): void {
  const { agent, title, metadata, parent, forked_from, ...begin } = write.thread;
  const texts = [agent ?? null, title ?? null, SQLITE.folded(title), JSON.stringify(metadata)];
  const above = parent ? [JSON.stringify(parent), parent.thread_id] : [null, null];
  const origin = forked_from ? JSON.stringify(forked_from) : null;
  if (isStaged(write)) assertWhole(statements, thread, write.staged);
  (isStaged(write) ? statements.revealStaged : statements.insertThread).run(
    ...thread,
    ...texts,
    ...above,
    origin,
    at,
  );
  changes.fill(thread, begin);
}

/** If a copy was dropped for a thread that was then deleted, its earlier messages are missing. */
function assertWhole(
  { selectStaged }: SqliteWriteContext["statements"],
  thread: ThreadKey,
  { token, count }: StagedMessages,
): void {
  if (selectStaged.get(...thread, token)?.message_count !== count) throw threadExists(thread[1]);
}

function addRun(
  { statements }: SqliteWriteContext,
  thread: ThreadKey,
  { run, title }: AddRun,
  at: number,
): void {
  const { id, agent, metadata, idempotency_key: key = null, resumes = null, request } = run;
  const texts = [NO_USAGE, metadata].map((value) => JSON.stringify(value));
  statements.insertRun.run(...thread, id, agent, ...texts, key, resumes, at, JSON.stringify(request));
  statements.makeBusy.run(agent, at, title ?? null, SQLITE.folded(title), ...thread);
}

type CreateThread = Extract<Write, { write: "create_thread" }>;

/** Returns true if the thread begins with staged messages. */
function isStaged(write: CreateThread): write is CreateThread & { readonly staged: StagedMessages } {
  return write.staged !== undefined && write.staged.count > 0;
}

type AddRun = Extract<Write, { write: "add_run" }>;
