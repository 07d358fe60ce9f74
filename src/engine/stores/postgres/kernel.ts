// Threads, runs and deferred calls in PostgreSQL. Each change of a thread is a transaction that takes the thread's
// lock. A write that is fenced only by a lease's epoch is a single statement.

import type { Lease } from "../../../agent/core/stores.ts";
import { threadExists } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import { TELLS_OF_CRASHES } from "../outcomes.ts";
import { ownerOf, ownerText, rowKey, type ThreadKey, tenantText } from "../row-keys.ts";
import { type EventRow, entriesOf } from "../rows.ts";
import { sharedEvents } from "../shared/events.ts";
import { type Decision, headAfter, type View, type Write } from "../thread-head.ts";
import type { StoreContext } from "./context.ts";
import { type Transaction, timeOf } from "./database.ts";
import { postgresDue } from "./due.ts";
import { postgresReads } from "./reads.ts";
import { loadView } from "./views.ts";
import { carryOut } from "./writes.ts";

const THREAD = "owner = $1 AND thread_id = $2";

export function postgresKernel(context: StoreContext): Kernel<ThreadKey> {
  const { database, limits, retention, calls, writer, runFeed, feeds } = context;
  const { leaseMs } = limits;
  return {
    limits,
    ref: (owner, id) => [ownerText(owner), id],

    async change(thread, lookups, decide) {
      const { after, busyThreads } = lookups;
      // Writes the waiting events first.
      if (after) await writer.finish(after);
      await retention.visit(thread);
      const tenant = tenantText(ownerOf(thread[0]).tenant);
      const room = `room ${tenant}`;
      const change = () =>
        inTransaction(thread, after, async (tx) => {
          // Only one transaction at a time counts a tenant's threads.
          if (busyThreads) void tx.rows("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [room]);
          const clock = database.clock();
          const loaded = await loadView(tx, thread, lookups, { clock, tenant });
          const view = {
            ...loaded,
            until: loaded.until === 0 ? 0 : loaded.until + database.outages.graceMs(leaseMs),
          };
          const decision = decide(view);
          const held = await write(tx, thread, view, decision);
          return { decision, held, now: view.now };
        });
      const decided = await (busyThreads ? database.oneByOne(room, change) : change());
      const { decision, held, now } = decided;
      if (held) writer.begin(held.lease, held.seq);
      const cancelled = decision.writes.find((each) => each.write === "cancel_run");
      if (cancelled)
        feeds.hear(firstLease(thread, cancelled.run), cancelled.pending, cancelled.pending.length);
      if (decision.tell) calls.publish(decision.tell);
      return decision.result(now);
    },

    async stage(thread, token, messages) {
      await database.transaction(["thread", ...thread], async (tx) => {
        // Another process may be staging the same thread, or may have died. The creation of the thread decides which
        // process succeeds.
        const [other] = await tx.rows("SELECT 1 FROM threads WHERE owner = $1 AND id = $2", thread);
        if (other) throw threadExists(thread[1]);
        tx.write(
          `INSERT INTO staged (owner, thread_id, token, position, id, body, at)
          SELECT $1, $2, $3, number + (SELECT coalesce(max(position), 0) FROM staged WHERE ${THREAD} AND token = $3),
            id, body, ${timeOf(6)}
          FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS new (id, body, number) ON CONFLICT DO NOTHING`,
          [
            ...[...thread, token, messages.map(({ id }) => JSON.stringify(id))],
            ...[messages.map(({ text }) => text), database.clock()],
          ],
        );
      });
    },

    async unstage(thread, token) {
      await database.query(`DELETE FROM staged WHERE ${THREAD} AND token = $3`, [...thread, token]);
    },

    async logOf(lease) {
      return database
        .query<EventRow>(SELECT_LAST_EVENTS, rowKey(lease))
        .then((rows) => rows.flatMap(entriesOf));
    },

    async findCall(tokenHash) {
      const [found] = await database.query<{ owner: string; thread_id: string; call_id: string }>(
        "SELECT owner, thread_id, call_id FROM deferred_calls WHERE token_hash = $1",
        [tokenHash],
      );
      return (
        found && {
          thread: [found.owner, found.thread_id] as const,
          call_id: JSON.parse(found.call_id) as string,
        }
      );
    },

    ...postgresDue(context),
    events: sharedEvents(context),
    ...postgresReads(context),
  };

  /** Returns the acquired lease and the position of its log. */
  async function write<R>(
    tx: Transaction,
    thread: ThreadKey,
    view: View,
    { writes }: Decision<R>,
  ): Promise<{ readonly lease: Lease; readonly seq: number } | undefined> {
    const owner = ownerOf(thread[0]);
    let { head } = view;
    for (const each of writes) {
      carryOut({ tx, thread, head, at: view.now, leaseMs }, each);
      head = headAfter(head, each, owner);
    }
    tellOfEnd(tx, thread, writes);
    const hold = writes.find((each) => each.write === "hold_run");
    if (!hold) return undefined;
    const lease = { owner, thread_id: thread[1], run_id: hold.run, epoch: hold.epoch };
    if (hold.begins) return { lease, seq: 0 };
    const [turn] = await tx.rows<{ last_seq: number }>(`SELECT last_seq FROM turns WHERE ${THREAD}`, thread);
    return { lease, seq: turn?.last_seq ?? 0 };
  }

  /** Waits until the holder of `after` has nothing left to write. */
  async function inTransaction<T>(
    thread: ThreadKey,
    after: Lease | undefined,
    work: (tx: Transaction) => Promise<T>,
  ): Promise<T> {
    try {
      return await database.transaction(["thread", ...thread], work);
    } finally {
      if (after) writer.forget(after);
    }
  }

  /** Announces the log of a run that is cancelled while it waits, because the log may have followers. */
  function tellOfEnd(tx: Transaction, thread: ThreadKey, writes: readonly Write[]): void {
    const cancelled = writes.find((each) => each.write === "cancel_run");
    if (!cancelled) return;
    const run = firstLease(thread, cancelled.run);
    const news = { run, last: cancelled.pending.length, epoch: run.epoch, ends: true };
    tx.write("SELECT pg_notify($1, told) FROM unnest($2::text[]) AS told", [
      runFeed.channel,
      runFeed.payloads([news]),
    ]);
  }
}

/** Returns the lease of a run that ended before any process claimed it. */
const firstLease = ([owner, thread_id]: ThreadKey, run_id: string): Lease => ({
  owner: ownerOf(owner),
  thread_id,
  run_id,
  epoch: 1,
});

const SELECT_LAST_EVENTS = `
  SELECT last_seq, epoch, event, body FROM events WHERE owner = $1 AND thread_id = $2 AND run_id = $3
    AND event IN (${TELLS_OF_CRASHES.map((name) => `'${name}'`).join(", ")}) ORDER BY last_seq`;
