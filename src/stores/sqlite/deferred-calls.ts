// Calls whose results come later, in the file.

import {
  type CallChange,
  type CallKey,
  CallState,
  type DeferredCall,
  type DeferredCallStore,
  hasResult,
  isAwaited,
  MAX_DEFERRED_CALLS,
  stateAfter,
} from "../../core/deferred-calls.ts";
import { noSuchThread, tooManyDeferredCalls } from "../refusals.ts";
import type { Engine } from "./engine.ts";
import { ownerOf, ownerText } from "./keys.ts";
import { hasEnded } from "./lifetime.ts";

interface CallRow {
  readonly owner: string;
  readonly thread_id: string;
  readonly call_id: string;
  readonly run_id: string;
  readonly tool: string;
  readonly token_hash: string;
  readonly state: DeferredCall["state"];
  readonly reply: string | null;
  readonly expires_at: number;
}

const COLUMNS = "owner, thread_id, call_id, run_id, tool, token_hash, state, reply, expires_at";
const IN_THREAD = "owner = ? AND thread_id = ?";
const CALL = `${IN_THREAD} AND call_id = ?`;
/** Takes the time. */
const IS_DUE = `(state IN (${statesThat(hasResult)}) OR state IN (${statesThat(isAwaited)}) AND expires_at <= ?)`;

export function sqliteDeferredCalls({ database, lifetime, limits }: Engine): DeferredCallStore {
  const { now, leaseMs } = limits;
  const select = database.query<CallRow>(`SELECT ${COLUMNS} FROM deferred_calls WHERE ${CALL}`);
  const selectThread = database.query(`SELECT 1 FROM threads WHERE owner = ? AND id = ?`);
  const dropUnanswered = database.query(
    `DELETE FROM deferred_calls WHERE ${IN_THREAD} AND state = 'sent' AND expires_at <= ?`,
  );
  const countOthers = database.query<{ others: number }>(
    `SELECT count(*) AS others FROM deferred_calls WHERE ${IN_THREAD} AND call_id <> ?`,
  );
  const remove = database.query(`DELETE FROM deferred_calls WHERE ${CALL}`);
  const insert = database.query(
    `INSERT INTO deferred_calls (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, 'sent', NULL, ?)`,
  );
  const setState = database.query(`UPDATE deferred_calls SET state = ?, due_at = expires_at WHERE ${CALL}`);
  const setReply = database.query<CallRow>(`
    UPDATE deferred_calls SET state = ?, reply = ?, due_at = ? WHERE token_hash = ? RETURNING ${COLUMNS}`);
  const selectByToken = database.query<CallRow>(
    `SELECT ${COLUMNS} FROM deferred_calls WHERE token_hash = ? AND expires_at > ?`,
  );
  const selectDue = database.query<Pick<CallRow, "owner" | "thread_id">>(`
    SELECT owner, thread_id FROM (
      SELECT owner, thread_id, min(due_at) AS due,
        row_number() OVER (PARTITION BY json_extract(owner, '$[0]') ORDER BY min(due_at)) AS turn
      FROM deferred_calls AS calls
      WHERE due_at <= ?1 AND EXISTS (
        SELECT 1 FROM threads WHERE owner = calls.owner AND id = calls.thread_id AND status <> 'busy'
            AND NOT ${hasEnded(3, 4)})
      GROUP BY owner, thread_id)
    ORDER BY turn, due LIMIT ?2`);
  const hold = database.query(`UPDATE deferred_calls SET due_at = ? WHERE ${IN_THREAD} AND ${IS_DUE}`);
  const selectDueCalls = database.query<Pick<CallRow, "call_id">>(
    `SELECT call_id FROM deferred_calls WHERE ${IN_THREAD} AND ${IS_DUE}`,
  );

  return {
    async open(call) {
      const key = keyOf(call);
      const [owner, thread] = key;
      lifetime.visit(owner, thread);
      database.write("fast", () => {
        if (!selectThread.get(owner, thread)) throw noSuchThread(thread);
        dropUnanswered.run(owner, thread, now());
        if ((countOthers.get(...key)?.others ?? 0) >= MAX_DEFERRED_CALLS) throw tooManyDeferredCalls(thread);
        remove.run(...key);
        insert.run(...key, call.run_id, call.tool, call.token_hash, Date.parse(call.expires_at));
      });
    },

    async get(key) {
      const names = keyOf(key);
      lifetime.visit(names[0], names[1]);
      return callOf(database.read(() => select.get(...names)));
    },

    accept: (key) => change(key, "accept"),
    leave: (key) => change(key, "leave"),
    close: (key) => change(key, "close"),

    async deliver(tokenHash, reply) {
      const call = database.read(() => selectByToken.get(tokenHash, now()));
      if (!call) return undefined;
      lifetime.visit(call.owner, call.thread_id);
      const row = database.write("durable", () => {
        const found = selectByToken.get(tokenHash, now());
        const state = found && stateAfter("deliver", found.state);
        return state && setReply.get(state, JSON.stringify(reply), now(), tokenHash);
      });
      return callOf(row);
    },

    async forget(key) {
      database.write("fast", () => remove.run(...keyOf(key)));
    },

    async due(limit) {
      return database.write("fast", () =>
        selectDue.all(now(), limit, ...lifetime.ended()).map(({ owner, thread_id }) => {
          hold.run(now() + leaseMs, owner, thread_id, now());
          const calls = selectDueCalls.all(owner, thread_id, now());
          return { owner: ownerOf(owner), thread_id, call_ids: calls.map(({ call_id }) => call_id) };
        }),
      );
    },
  };

  /** Returns the call as it is then. */
  async function change(key: CallKey, by: CallChange): Promise<DeferredCall | undefined> {
    const names = keyOf(key);
    lifetime.visit(names[0], names[1]);
    const row = database.write("durable", () => {
      const found = select.get(...names);
      const state = found && stateAfter(by, found.state);
      if (!state) return found;
      if (state === "gone") remove.run(...names);
      else setState.run(state, ...names);
      return state === "gone" ? undefined : { ...found, state };
    });
    return callOf(row);
  }
}

/** As SQL has them. */
function statesThat(fits: (state: CallState) => boolean): string {
  return CallState.options
    .filter(fits)
    .map((state) => `'${state}'`)
    .join(", ");
}

const keyOf = ({ owner, thread_id, call_id }: CallKey) => [ownerText(owner), thread_id, call_id] as const;

function callOf(row: CallRow | undefined): DeferredCall | undefined {
  if (!row) return undefined;
  const { owner, expires_at, reply, ...rest } = row;
  const call = { ...rest, owner: ownerOf(owner), expires_at: new Date(expires_at).toISOString() };
  return reply === null ? call : { ...call, reply: JSON.parse(reply) };
}
