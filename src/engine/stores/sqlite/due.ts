// Finds due threads: threads with runs that no process holds, and threads with deferred calls that can continue.

import { hasResult, isAwaited } from "../../../agent/core/deferred-calls.ts";
import { latestLeaseEnd } from "../clock-set-back.ts";
import type { Due, Kernel, LookResult } from "../kernel.ts";
import { ownerOf, type ThreadKey } from "../row-keys.ts";
import { statesThat } from "../rows.ts";
import type { StoreContext } from "./context.ts";
import { hasEnded } from "./retention.ts";

const THREAD = "owner = ? AND thread_id = ?";
/** Needs the time as a parameter. */
const IS_DUE = `(state IN (${statesThat(hasResult)}) OR state IN (${statesThat(isAwaited)}) AND expires_at <= ?)`;

export function sqliteDue(context: StoreContext): Pick<Kernel<ThreadKey>, "eachDue" | "dueCalls"> {
  const { database, queue, writer, retention, limits } = context;
  const { now, leaseMs } = limits;
  const selectDue = database.query<{ owner: string; thread_id: string }>(`
    SELECT owner, thread_id FROM (
      SELECT owner, thread_id, min(due_at) AS due,
        row_number() OVER (PARTITION BY json_extract(owner, '$[0]') ORDER BY min(due_at)) AS turn
      FROM deferred_calls AS calls
      WHERE due_at <= ?1 AND EXISTS (
        SELECT 1 FROM threads WHERE owner = calls.owner AND id = calls.thread_id AND status <> 'busy'
            AND NOT ${hasEnded(3, 4)})
      GROUP BY owner, thread_id)
    ORDER BY turn, due LIMIT ?2`);
  const hurryResults = database.query(
    `UPDATE deferred_calls SET due_at = ?1 WHERE due_at > ?2 AND state IN (${statesThat(hasResult)})`,
  );
  const holdCalls = database.query(`UPDATE deferred_calls SET due_at = ? WHERE ${THREAD} AND ${IS_DUE}`);
  const selectDueCalls = database.query<{ call_id: string }>(
    `SELECT call_id FROM deferred_calls WHERE ${THREAD} AND ${IS_DUE}`,
  );
  /** The time of the last search for deferred calls. */
  let lookedAt = Number.POSITIVE_INFINITY;

  return {
    async eachDue<T>({ limit, except }: Due, look: (thread: ThreadKey) => Promise<LookResult<T>>) {
      writer.flush();
      database.assertOpen();
      const all: T[] = [];
      const left = new Set(except);
      const later: ThreadKey[] = [];
      while (all.length < limit) {
        const thread = queue.take(left);
        if (!thread) break;
        try {
          const looked = await look(thread);
          if (!("until" in looked)) all.push(looked.found);
          else if (looked.until !== undefined) later.push(thread);
        } catch (error) {
          queue.putBack(thread);
          // Claimed runs must be executed, so the error is thrown only if no run was claimed.
          if (all.length === 0) throw error;
          break;
        }
      }
      for (const thread of later) if (queue.heldUntil(thread) === undefined) queue.putBack(thread);
      return all;
    },

    async dueCalls(limit) {
      return database.write(() => {
        const time = now();
        // A result becomes due within the length of a lease. If it is due later, the clock was set back, perhaps while
        // the file was closed.
        if (time < lookedAt) hurryResults.run(time, latestLeaseEnd(time, leaseMs));
        lookedAt = time;
        return selectDue.all(time, limit, ...retention.ended()).map(({ owner, thread_id }) => {
          holdCalls.run(time + leaseMs, owner, thread_id, time);
          const calls = selectDueCalls.all(owner, thread_id, time);
          return { owner: ownerOf(owner), thread_id, call_ids: calls.map(({ call_id }) => call_id) };
        });
      });
    },
  };
}
