// How the most recent run of each listed thread ended, for the marks in the list. The record of a thread shows only
// whether its run failed.

import type { RunRecord } from "../client/client.ts";
import { keepRead, onChange } from "./changes.ts";
import { touch } from "./frame.ts";
import { client } from "./session.ts";

/** The most recent run of each thread. Threads that changed long ago have no entry. */
export const ends = { newest: new Map<string, RunRecord>() };

/** The number of runs to read at first. Later, each run is added when it ends. */
const PAGE = 50;
/** The maximum number of threads. A new entry replaces the oldest one. */
const MAX_ENDS = 1_000;

/** Keeps `ends` up to date. Returns a function that stops the updates. */
export function followEnds(): () => void {
  const ending = new AbortController();
  const kept = keepRead(
    () => false,
    async (signal) => {
      // The page ignores errors here, because without this data the marks only show less detail.
      const { items = [] } = await client.runs.list({ limit: PAGE }, signal).catch(() => ({ items: [] }));
      for (const run of [...items].reverse()) keep(run);
      touch(ends);
    },
  );
  const forget = onChange((change) => {
    if (change.event === "thread_changed" && change.data.change !== "updated")
      ends.newest.delete(change.data.thread_id);
    if (change.event !== "run_ended") return;
    const { thread_id, run_id } = change.data;
    client.runs.get(thread_id, run_id, ending.signal).then(
      (run) => {
        keep(run);
        touch(ends);
      },
      () => {},
    );
  });
  return () => {
    ending.abort();
    forget();
    kept.end();
  };
}

function keep(run: RunRecord): void {
  const { newest } = ends;
  if (run.ended_at === undefined) return;
  if ((newest.get(run.thread_id)?.created_at ?? "") > run.created_at) return;
  newest.delete(run.thread_id);
  newest.set(run.thread_id, run);
  for (const oldest of [...newest.keys()].slice(0, -MAX_ENDS)) newest.delete(oldest);
}
