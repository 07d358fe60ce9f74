// The most recent events of runs, as long as nothing else relies on these events. One row contains a batch from all
// runs, so the tokens of a hundred runs change one page of the file rather than a hundred. The events of a run move to
// the run's own log with its next event of another kind, or when they become too many or too old. Until then, readers
// get them from memory. A process that opens the file moves what the previous process left behind.

import { rowsOf } from "../log-rows.ts";
import type { PendingEvent } from "../outcomes.ts";
import { rowKey } from "../row-keys.ts";
import type { AfterCommit, Database } from "./database.ts";
import type { LiveRun } from "./live-runs.ts";
import { mayPass } from "./node-sqlite.ts";

/** The maximum number of events to keep per run. The run's log in memory keeps more events. */
const MOST_EVENTS = 48;
const MOST_CHARS = 64 * 1024;
/** The number of added rows after which a run's oldest events in these rows move to its log. */
const MOST_ROWS = 128;

/** The events of a run in one batch. */
export interface RunEvents {
  readonly run: LiveRun;
  readonly epoch: number;
  readonly pending: readonly PendingEvent[];
}

/** The kept events of one run. */
interface TailEntry extends RunEvents {
  readonly pending: PendingEvent[];
  readonly firstRow: number;
  chars: number;
}

/** The columns of a row of `events`. */
export type EventColumns = readonly [
  owner: string,
  threadId: string,
  runId: string,
  lastSeq: number,
  epoch: number,
  event: string,
  body: string,
];

export interface Tail {
  /** Returns true if there is room for these events of the run and they belong to the same attempt. */
  hasRoomFor(said: RunEvents): boolean;
  /** Adds a row with these events, before readers get them. Call this within a transaction. */
  keep(all: readonly RunEvents[], afterCommit: AfterCommit): void;
  /** Returns the kept events of a run, which its log in the file lacks. */
  of(run: LiveRun): RunEvents | undefined;
  /** Drops the kept events of a run after they were added to its log. Call this within a transaction. */
  forget(run: LiveRun, afterCommit: AfterCommit): void;
  /** Returns the runs to move to their logs. */
  old(): readonly RunEvents[];
}

/** Moves the events that an earlier process left behind. Call this before anything reads events. */
export function openTail(database: Database): Tail {
  const insert = database.query("INSERT INTO tail (id, body) VALUES (?, ?)");
  const drop = database.query("DELETE FROM tail WHERE id < ?");
  /** Sorted by waiting time, longest first. */
  const kept = new Map<LiveRun, TailEntry>();
  let rows = 0;
  /** The first remaining row. */
  let firstRow = 1;
  moveAll(database);

  const isOld = (each: TailEntry) => rows - each.firstRow >= MOST_ROWS;

  return {
    hasRoomFor({ run, epoch, pending }) {
      const before = kept.get(run);
      if (before && before.epoch !== epoch) return false;
      const events = (before?.pending.length ?? 0) + pending.length;
      return events <= MOST_EVENTS && (before?.chars ?? 0) + charsOf(pending) <= MOST_CHARS;
    },

    keep(all, afterCommit) {
      const row = ++rows;
      insert.run(row, JSON.stringify(all.flatMap(columnsOf)));
      afterCommit(() => {
        for (const each of all) add(each, row);
      });
    },

    of: (run) => kept.get(run),
    forget(run, afterCommit) {
      const [oldest, next] = kept.values().take(2);
      // The same transaction may add another row.
      const end = rows + 1;
      if (oldest?.run === run) dropBefore(next?.firstRow ?? end, afterCommit);
      afterCommit(() => {
        kept.delete(run);
        if (kept.size === 0 && firstRow < end) dropAllBefore(end);
      });
    },
    old,
  };

  /** Deletes rows that no run needs. */
  function dropBefore(row: number, afterCommit: AfterCommit): void {
    drop.run(row);
    afterCommit(() => {
      firstRow = row;
    });
  }

  /**
   * Called when several runs have moved at once. If a row cannot be dropped now, it is dropped along with the next one.
   */
  function dropAllBefore(row: number): void {
    try {
      database.write((afterCommit) => dropBefore(row, afterCommit));
    } catch (error) {
      if (!mayPass(error)) throw error;
    }
  }

  function old(): RunEvents[] {
    const found: RunEvents[] = [];
    for (const each of kept.values()) {
      if (!isOld(each)) break;
      found.push(each);
    }
    return found;
  }

  function add({ run, epoch, pending }: RunEvents, row: number): void {
    const to = kept.get(run) ?? { run, epoch, pending: [], firstRow: row, chars: 0 };
    run.written += pending.length;
    to.pending.push(...pending);
    to.chars += charsOf(pending);
    kept.set(run, to);
  }
}

const charsOf = (pending: readonly PendingEvent[]) => pending.reduce((sum, { json }) => sum + json.length, 0);

/** Returns the rows that the events would have in the log of their run. */
function columnsOf({ run, epoch, pending }: RunEvents): EventColumns[] {
  let seq = run.written;
  return rowsOf(pending).map(({ event, body, count }) => {
    seq += count;
    return [...rowKey(run.key), seq, epoch, event, body];
  });
}

/** Skips rows that a log already contains, and rows of ended runs. */
function moveAll(database: Database): void {
  const select = database.query<{ body: string }>("SELECT body FROM tail ORDER BY id");
  const move = database.query(`
    INSERT INTO events (owner, thread_id, run_id, last_seq, epoch, event, body) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
    WHERE EXISTS (SELECT 1 FROM runs WHERE owner = ?1 AND thread_id = ?2 AND id = ?3 AND status = 'running')
      AND ?4 > coalesce((SELECT max(last_seq) FROM events WHERE owner = ?1 AND thread_id = ?2 AND run_id = ?3), 0)`);
  const clear = database.query("DELETE FROM tail");
  database.write(() => {
    for (const { body } of select.all())
      for (const columns of JSON.parse(body) as EventColumns[]) move.run(...columns);
    clear.run();
  });
}
