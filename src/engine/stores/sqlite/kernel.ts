// Threads, runs and deferred calls in the file. A single process uses the file, and nothing here waits. Loaded data
// cannot change before the commit, so only the writes of a decision need a transaction.

import type { Kernel } from "../kernel.ts";
import { TELLS_OF_CRASHES } from "../outcomes.ts";
import { ownerOf, ownerText, rowKey, type ThreadKey, threadText } from "../row-keys.ts";
import { type EventRow, entriesOf } from "../rows.ts";
import { headAfter, type View, type Write } from "../thread-head.ts";
import type { StoreContext } from "./context.ts";
import { sqliteDue } from "./due.ts";
import { sqliteEvents } from "./events.ts";
import { sqliteReads } from "./reads.ts";
import { sqliteViews } from "./views.ts";
import { sqliteWrites } from "./writes.ts";

const THREAD = "owner = ? AND thread_id = ?";
export function sqliteKernel(context: StoreContext): Kernel<ThreadKey> {
  const { database, queue, writer, retention, removals, flights, limits } = context;
  const reads = sqliteReads(context);
  const writes = sqliteWrites(context);
  const { viewOf } = sqliteViews(context, reads);

  const selectByToken = database.query<{ owner: string; thread_id: string; call_id: string }>(
    "SELECT owner, thread_id, call_id FROM deferred_calls WHERE token_hash = ?",
  );
  const selectLastEvents = database.query<EventRow>(`
    SELECT last_seq, epoch, event, body FROM events WHERE ${THREAD} AND run_id = ?
      AND event IN (${TELLS_OF_CRASHES.map((name) => `'${name}'`).join(", ")}) ORDER BY last_seq`);

  return {
    limits,
    ref: (owner, id) => [ownerText(owner), id],

    async change(thread, lookups, decide) {
      for (;;) {
        // Writes the waiting events first, because they may end a run or change the thread.
        writer.flushThread(thread);
        database.assertOpen();
        const rest = retention.visit(...thread);
        if (rest) {
          await rest;
          continue;
        }
        const view = database.read(() => viewOf(thread, lookups));
        let decision: ReturnType<typeof decide>;
        try {
          decision = decide(view);
        } catch (error) {
          await landed(thread);
          throw error;
        }
        const copy = writes.dropCopy(thread, decision.writes);
        if (copy) {
          await copy;
          continue;
        }
        const carriedOut = carryOut(thread, view, decision.writes);
        const removed = removals.of(thread);
        await carriedOut;
        if (decision.tell) queue.call(decision.tell);
        await removed;
        return decision.result(view.now);
      }
    },

    stage: writes.stage,
    unstage: writes.unstage,

    async logOf(lease) {
      writer.moveToLog(lease);
      return database.read(() => selectLastEvents.all(...rowKey(lease)).flatMap(entriesOf));
    },

    async findCall(tokenHash) {
      const found = database.read(() => selectByToken.get(tokenHash));
      return found && { thread: [found.owner, found.thread_id], call_id: found.call_id };
    },

    ...sqliteDue(context),
    events: sqliteEvents(context),
    runs: { ...reads.runs, waiting: async () => queue.waiting() },
    threads: reads.threads,
    deferredCalls: reads.deferredCalls,
  };

  /**
   * Commits at once, and resolves when everything is as durable as required. If there are no writes, resolves when the
   * data on which the decision was based is equally durable.
   */
  async function carryOut(thread: ThreadKey, { head, now }: View, all: readonly Write[]): Promise<void> {
    if (all.length === 0) return landed(thread);
    const effects: (() => void)[] = [];
    database.write((afterCommit) => {
      const after = { afterCommit, afterFlush: (effect: () => void) => void effects.push(effect) };
      let before = head;
      for (const write of all) {
        writes.carryOut(thread, before, write, now, after);
        before = headAfter(before, write, ownerOf(thread[0]));
      }
    });
    const show = () => {
      for (const effect of effects) effect();
    };
    if (mayBeLost(all)) return show();
    const landing = database.flushed().then(show);
    flights.add(threadText(thread), landing);
    await landing;
  }

  /** Resolves when all commits of the thread are on disk. */
  async function landed(thread: ThreadKey): Promise<void> {
    await flights.of(threadText(thread));
    database.assertOpen();
  }
}

/**
 * Returns true if a machine crash may lose the writes. Claims and unanswered calls may be lost, because everything that
 * relies on them is written later and is durable.
 */
const mayBeLost = (writes: readonly Write[]): boolean =>
  writes.every(
    (each) =>
      each.write === "hold_run" ||
      each.write === "renew_run" ||
      each.write === "drop_call" ||
      (each.write === "put_call" && each.call.state === "sent"),
  );
