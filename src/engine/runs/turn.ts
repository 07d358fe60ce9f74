// A turn consists of a run and all runs that resume it, until one ends without a question.

import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { type End, kindOfEnd, trackEnd } from "../../protocol/end.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import { newestRun } from "./control.ts";
import type { Runs } from "./executor.ts";
import { openOn } from "./start.ts";

/** Returns the first run of the turn that `run` belongs to. The search stops at a run that is no longer stored. */
export async function turnStart(
  { stores }: Pick<Runs, "stores">,
  owner: Owner,
  run: RunRecord,
): Promise<RunRecord> {
  let first = run;
  while (first.resumes !== undefined) {
    const before = await stores.runs.get(owner, first.thread_id, first.resumes);
    if (!before) break;
    first = before;
  }
  return first;
}

/**
 * Returns the current run in the turn of `run`. This is the newest run that resumes it, directly or indirectly, or
 * `run` itself.
 */
export async function turnNow(
  { stores }: Pick<Runs, "stores">,
  owner: Owner,
  run: RunRecord,
): Promise<RunRecord> {
  const later: RunRecord[] = [];
  let cursor: string | undefined;
  do {
    const page = omitUndefined({ limit: 100, cursor });
    const { items, next_cursor } = await stores.runs.list(owner, run.thread_id, page);
    const at = items.findIndex(({ id }) => id === run.id);
    later.push(...(at < 0 ? items : items.slice(0, at + 1)));
    cursor = at < 0 ? next_cursor : undefined;
  } while (cursor !== undefined);
  return later.reduceRight((now, each) => (each.id === run.id || each.resumes === now.id ? each : now), run);
}

/**
 * Returns the thread's newest run if its turn continues without an answer, because the run is executing or waits for a
 * slot or a deferred result.
 */
export async function turnInProgress(
  { stores }: Pick<Runs, "stores">,
  owner: Owner,
  threadId: string,
): Promise<RunRecord | undefined> {
  const newest = await newestRun(stores.runs, owner, threadId);
  if (!newest) return undefined;
  if (!isSettled(newest.status)) return newest;
  if (newest.status !== "interrupted") return undefined;
  const isAsking = (await openOn(stores.threads, owner, threadId)).length > 0;
  const { status, stop_reason } = newest;
  return kindOfEnd({ status, stop_reason }, isAsking) === "waits" ? newest : undefined;
}

/**
 * Returns a function to call with each event of a run, in order. The function returns true when the run has ended and
 * the turn does not continue. By default, a turn continues after a run that waits for a deferred result.
 */
export function trackTurn(
  continuesAfter: (end: End) => boolean = ({ as }) => as === "waits",
): (event: StreamEvent) => boolean {
  const track = trackEnd();
  return (event) => {
    const end = track(event);
    return end !== undefined && !continuesAfter(end);
  };
}
