// The only file that writes the events of runs, together with their effects. Waits for an unreachable PostgreSQL for as
// long as a lease lasts.
//
// Events that only extend logs are written with one statement for all runs of this process. One statement runs at a
// time, while further events collect for the next one. Events are on disk before they are shown, so a crash of
// PostgreSQL loses nothing that a viewer has seen.

import type { UserMessage } from "../../../agent/core/message.ts";
import type { Lease } from "../../../agent/core/stores.ts";
import { leaseLost } from "../errors.ts";
import { endIn, messagesIn, writesOf } from "../event-writes.ts";
import type { Limits } from "../options.ts";
import { changesThread, hasEnd, type MessageText, type PendingEvent, stamp } from "../outcomes.ts";
import { ownerText, rowKey } from "../row-keys.ts";
import type { Batch, EventCommitter } from "../shared/lease-writer.ts";
import type { LiveTails } from "../shared/live-tails.ts";
import type { PostgresCalls, RunNewsFeed } from "./bus.ts";
import { type Database, type Transaction, timeOf } from "./database.ts";
import {
  addMessages,
  columnsOf,
  endRun,
  freeThread,
  insertEvents,
  patchedState,
  setOutcome,
  setState,
  stateAfter,
  touch,
} from "./event-writes.ts";

interface Services {
  readonly database: Database;
  readonly limits: Limits;
  readonly calls: PostgresCalls;
  readonly runFeed: RunNewsFeed;
  readonly feeds: LiveTails;
}

/** The number of added entries after which old rows are deleted. */
const DROP_EVERY = 1024;

type RunBatch = Batch<undefined>;

interface TurnRow {
  readonly now: number;
  readonly last_seq: number;
  readonly batch: number;
}

/** The entries of the log, and the number of the last one. */
interface AppendResult {
  readonly written: readonly PendingEvent[];
  readonly last: number;
}

const HELD = "owner = $1 AND thread_id = $2 AND run_id = $3 AND epoch = $4 AND until <> 0";

export function createEventCommitter(services: Services): EventCommitter<undefined> {
  const { database, limits, calls, runFeed, feeds } = services;
  const addToLogs = createLogAppender(services);

  return {
    assertOpen: () => database.assertOpen(),

    async positionOf(lease) {
      const [found] = await database.queryUntilLeaseEnds<TurnRow>(
        `SELECT last_seq, batch FROM turns WHERE ${HELD}`,
        leaseKey(lease),
      );
      if (!found) throw leaseLost(lease);
      return { batch: found.batch, confirmed: found.last_seq };
    },

    async commit(batch) {
      const { lease, pending, confirmed } = batch;
      const isChange = pending.some(changesThread);
      const { written, last } = isChange
        ? await database.deadlines.inRun(() => change(batch))
        : await addToLogs(batch);
      feeds.hear(lease, written, last);
      dropOld(lease, confirmed, last);
      return last;
    },
  };

  /** Writes events that change the thread, in a separate transaction. */
  async function change({ lease, number, confirmed, pending }: RunBatch): Promise<AppendResult> {
    const thread = [ownerText(lease.owner), lease.thread_id] as const;
    const ends = hasEnd(pending);
    const own = writesOf(pending);
    const { isWaiting, ...result } = await database.transaction(["thread", ...thread], async (tx) => {
      const turn = tx.rows<TurnRow>(
        `SELECT last_seq, batch, ${timeOf(5)} AS now FROM turns WHERE ${HELD} FOR UPDATE`,
        [...leaseKey(lease), database.clock()],
      );
      const left = ends ? tx.rows<{ body: string }>(SELECT_INBOX, rowKey(lease)) : [];
      const waiting = ends ? tx.rows(SELECT_WAITING, thread) : [];
      const state = await patchedState(tx, thread, own.writes);
      const [held] = await turn;
      if (!held || held.last_seq < confirmed || held.batch >= number) throw leaseLost(lease);
      const before = held.last_seq;
      const inbox = (await left).map(({ body }) => JSON.parse(body) as UserMessage);
      const { appended, writes } =
        inbox.length > 0 ? writesOf(pending, { inbox, stamp: stamp(lease, limits.now()) }) : own;
      const last = before + appended.length;
      insertEvents(tx, lease, { epoch: lease.epoch, before, pending: appended });
      const messages = messagesIn(writes);
      addMessages(tx, thread, messages);
      takeIn(tx, lease, messages);
      setState(tx, thread, stateAfter(state, writes));
      const end = endIn(writes);
      if (end) {
        endRun(tx, lease, { ending: end.outcome, last, at: held.now });
        setOutcome(tx, lease, end.thread);
        freeThread(tx, thread, held.now);
      } else
        tx.write(`UPDATE turns SET last_seq = $5, batch = $6 WHERE ${HELD}`, [
          ...leaseKey(lease),
          last,
          number,
        ]);
      touch(tx, thread, held.now);
      tell(tx, [{ run: lease, last, epoch: lease.epoch, ends }]);
      return { written: appended, last, isWaiting: (await waiting).length > 0 };
    });
    if (isWaiting) calls.publish({ call: "waiting" });
    return result;
  }

  /** Removes messages from the inbox, if it contains them. */
  function takeIn(tx: Transaction, lease: Lease, messages: readonly MessageText[]): void {
    if (messages.length === 0) return;
    const ids = messages.map(({ id }) => JSON.stringify(id));
    tx.write("DELETE FROM inbox WHERE owner = $1 AND thread_id = $2 AND run_id = $3 AND id = ANY ($4)", [
      ...rowKey(lease),
      ids,
    ]);
  }

  function tell(tx: Transaction, news: Parameters<RunNewsFeed["payloads"]>[0]): void {
    tx.write("SELECT pg_notify($1, told) FROM unnest($2::text[]) AS told", [
      runFeed.channel,
      runFeed.payloads(news),
    ]);
  }

  /** Does not wait. Any remaining rows are deleted the next time. */
  function dropOld(lease: Lease, before: number, last: number): void {
    const surplus = last - limits.eventsPerRun;
    const isDue = Math.floor(last / DROP_EVERY) > Math.floor(before / DROP_EVERY);
    if (surplus <= 0 || !isDue) return;
    const where = "owner = $1 AND thread_id = $2 AND run_id = $3 AND last_seq <= $4";
    database.query(`DELETE FROM events WHERE ${where}`, [...rowKey(lease), surplus]).catch(() => {});
  }
}

const SELECT_INBOX =
  "SELECT body FROM inbox WHERE owner = $1 AND thread_id = $2 AND run_id = $3 ORDER BY number";
const SELECT_WAITING =
  "SELECT 1 FROM runs WHERE owner = $1 AND thread_id = $2 AND status = 'pending' LIMIT 1";

const leaseKey = (lease: Lease) => [...rowKey(lease), lease.epoch];

interface GatheredBatch {
  readonly batch: RunBatch;
  readonly written: PromiseWithResolvers<AppendResult>;
}

/** The maximum number of batches in one statement. */
const MAX_BATCHES = 500;

/** Writes batches of many runs in order. Throws `lease_lost` or `unavailable`. */
function createLogAppender({ database, runFeed }: Services) {
  let gathered: GatheredBatch[] = [];
  let isSending = false;

  return (batch: RunBatch): Promise<AppendResult> => {
    const written = Promise.withResolvers<AppendResult>();
    gathered.push({ batch, written });
    if (!isSending) void send();
    return written.promise;
  };

  async function send(): Promise<void> {
    isSending = true;
    // Collects everything that this tick of the event loop produces.
    await new Promise((resolve) => setImmediate(resolve));
    while (gathered.length > 0) {
      const some = gathered.slice(0, MAX_BATCHES);
      gathered = gathered.slice(MAX_BATCHES);
      try {
        await write(some);
      } catch (error) {
        for (const { written } of some) written.reject(error);
      }
    }
    isSending = false;
  }

  async function write(some: readonly GatheredBatch[]): Promise<void> {
    const runs = some.map(({ batch: { lease, number, confirmed, pending } }) => ({
      lease,
      number,
      confirmed,
      last: confirmed + pending.length,
      rows: columnsOf(pending, 0),
    }));
    const news = runs.map(({ lease, last }) => ({ run: lease, last, epoch: lease.epoch, ends: false }));
    const found = await database.queryUntilLeaseEnds<{ run: number; last: number }>(APPEND, [
      ...[runs.map(({ lease }) => ownerText(lease.owner)), runs.map(({ lease }) => lease.thread_id)],
      ...[runs.map(({ lease }) => lease.run_id), runs.map(({ lease }) => lease.epoch)],
      ...[runs.map(({ number }) => number), runs.map(({ confirmed }) => confirmed)],
      some.map(({ batch: { pending } }) => pending.length),
      runs.flatMap(({ rows }, run) => rows.seqs.map(() => run + 1)),
      ...[runs.flatMap(({ rows }) => rows.seqs), runs.flatMap(({ rows }) => rows.names)],
      ...[runs.flatMap(({ rows }) => rows.bodies)],
      ...[runFeed.channel, runFeed.payloads(news)],
    ]);
    const lasts = new Map(found.map(({ run, last }) => [run, last]));
    for (const [index, { batch, written }] of some.entries()) {
      const last = lasts.get(index + 1);
      if (last === undefined) written.reject(leaseLost(batch.lease));
      else written.resolve({ written: batch.pending, last });
    }
  }
}

/**
 * Adds rows to the logs of runs if the caller still has the lease and PostgreSQL has not lost confirmed entries.
 * Returns the number of each run and its last entry. Includes entries that an earlier call with a lost response has
 * written.
 */
const APPEND = `
WITH given AS (
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    WITH ORDINALITY AS each (owner, thread_id, run_id, epoch, number, confirmed, entries, run)),
held AS (
  SELECT given.*, turns.last_seq, turns.batch < given.number AS is_new FROM turns JOIN given USING (owner, thread_id, run_id, epoch)
  WHERE turns.until <> 0 AND turns.last_seq >= given.confirmed AND turns.batch <= given.number
  ORDER BY owner, thread_id FOR UPDATE OF turns),
moved AS (
  UPDATE turns SET last_seq = held.last_seq + held.entries, batch = held.number FROM held
  WHERE turns.owner = held.owner AND turns.thread_id = held.thread_id AND held.is_new),
added AS (
  INSERT INTO events (owner, thread_id, run_id, last_seq, epoch, event, body)
  SELECT held.owner, held.thread_id, held.run_id, held.last_seq + line.seq, held.epoch, line.name, line.body
  FROM held JOIN unnest($8::bigint[], $9::bigint[], $10::text[], $11::text[]) AS line (run, seq, name, body) USING (run)
  WHERE held.is_new)
SELECT run, CASE WHEN is_new THEN last_seq + entries ELSE last_seq END AS last,
  (SELECT count(pg_notify($12, told)) FROM unnest($13::text[]) AS told) FROM held`;
