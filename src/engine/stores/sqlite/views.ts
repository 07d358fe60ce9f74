// Loads a thread with the values that a decision needs.

import type { RunRequest } from "../../../agent/core/records.ts";
import { PAST } from "../fair-queue.ts";
import { ownerOf, type ThreadKey } from "../row-keys.ts";
import { RECORD_COLUMNS, type RecordRow, type RunRow, toRecord } from "../rows.ts";
import {
  type ActiveRun,
  type Lookups,
  runAhead,
  type StoredRun,
  type ThreadHead,
  type View,
} from "../thread-head.ts";
import type { StoreContext } from "./context.ts";
import type { Reads } from "./reads.ts";

const THREAD = "owner = ? AND thread_id = ?";
const RUN = `${THREAD} AND id = ?`;

interface Views {
  viewOf(thread: ThreadKey, lookups: Lookups): View;
}

export function sqliteViews({ database, live, queue, limits }: StoreContext, reads: Reads): Views {
  const selectThread = database.query("SELECT 1 FROM threads WHERE owner = ? AND id = ? AND staged IS NULL");
  const selectActive = database.query<Pick<RunRow, "id" | "attempt" | "released" | "stop">>(
    `SELECT id, attempt, released, stop FROM runs WHERE ${THREAD} AND status = 'running'`,
  );
  const selectQueue = database.query<{ id: string }>(
    `SELECT id FROM runs WHERE ${THREAD} AND status = 'pending' ORDER BY place`,
  );
  const selectRun = database.query<RecordRow & { request: string | null }>(
    `SELECT ${RECORD_COLUMNS}, request FROM runs WHERE ${RUN}`,
  );
  const selectMessage = database.query(`SELECT 1 FROM messages WHERE ${THREAD} AND id = ?`);
  const selectLast = database.query<{ id: string }>(
    `SELECT id FROM messages WHERE ${THREAD} ORDER BY position DESC LIMIT 1`,
  );
  const selectInbox = database.query<{ id: string }>(
    `SELECT id FROM inbox WHERE ${THREAD} AND run_id = ? ORDER BY number`,
  );

  return { viewOf };

  function viewOf(thread: ThreadKey, lookups: Lookups): View {
    const { key, run, next, message, last, inbox, call, calls, busyThreads } = lookups;
    const head = selectThread.get(...thread) ? headOf(thread) : undefined;
    const active = head?.active;
    const ahead = next && head && runAhead(head);
    const isHeld =
      head && active && live.isHeld({ owner: head.owner, thread_id: head.id, run_id: active.run });
    return {
      now: limits.now(),
      head,
      until: isHeld ? (queue.heldUntil(thread) ?? PAST) : 0,
      known: key === undefined ? undefined : reads.known(thread, key),
      run: run === undefined ? undefined : storedRun(thread, run),
      next: ahead === undefined ? undefined : storedRun(thread, ahead),
      hasMessage: message !== undefined && selectMessage.get(...thread, message) !== undefined,
      isLast: last !== undefined && selectLast.get(...thread)?.id === last,
      inbox: inbox && active && selectInbox.all(...thread, active.run).map(({ id }) => id),
      call: call === undefined ? undefined : reads.call(thread, call),
      calls: calls && reads.calls(thread),
      busyThreads: busyThreads && queue.count(thread[0]),
    };
  }

  function headOf(thread: ThreadKey): ThreadHead {
    const owner = ownerOf(thread[0]);
    const id = thread[1];
    if (!queue.isBusy(thread)) return { owner, id, active: undefined, queue: [] };
    const row = selectActive.get(...thread);
    return {
      owner,
      id,
      active: row && activeOf({ owner, thread_id: id, run_id: row.id }, row),
      queue: selectQueue.all(...thread).map((each) => each.id),
    };
  }

  function activeOf(
    key: { owner: ThreadHead["owner"]; thread_id: string; run_id: string },
    { id, attempt, released, stop }: Pick<RunRow, "id" | "attempt" | "released" | "stop">,
  ): ActiveRun {
    return { run: id, epoch: live.epochOf(key) ?? attempt, attempt, released, stop: stop ?? undefined };
  }

  function storedRun(thread: ThreadKey, id: string): StoredRun | undefined {
    const row = selectRun.get(...thread, id);
    // The request of an unfinished run is still stored exactly as it was sent.
    return (
      row && {
        record: toRecord(row),
        request: row.request === null ? undefined : (JSON.parse(row.request) as RunRequest),
      }
    );
  }
}
