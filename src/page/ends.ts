// How the newest run of each listed thread ended, for the marks in the list. A thread alone only says whether it failed.

import type { RunRecord } from "../client/client.ts";
import { keepRead, onChange } from "./changes.ts";
import { touch } from "./frame.ts";
import { client } from "./session.ts";

/** By thread. Those of threads that changed long ago are not read. */
export const ends = { newest: new Map<string, RunRecord>() };

/** Runs that are read at first; later each that ends. */
const PAGE = 50;
/** Threads whose newest run is kept. The oldest entry makes room. */
const MAX_ENDS = 1_000;

/** Keeps `ends` as the server has them. Returns the function that ends it. */
export function followEnds(): () => void {
  const ending = new AbortController();
  const kept = keepRead(
    () => false,
    async (signal) => {
      // Without it the marks say less, which is not worth an error.
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
