// Where a viewer stands in a run: the id of the last event it got, `<run>:<epoch>-<seq>`.

import type { FastifyRequest } from "fastify";
import { AppError } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import { isSettled, type RunRecord } from "../core/records.ts";
import type { Cursor } from "../core/stores.ts";
import { given } from "../lib/given.ts";
import type { RunManager } from "../runs/manager.ts";

const CURSOR = /^(?:(?<run>[A-Za-z0-9_-]{1,128}):(?<epoch>\d{1,9})-)?(?<seq>\d{1,9})$/;

/** The cursor with which a client comes back. */
export function lastEventId({ headers }: FastifyRequest): string | undefined {
  const header = headers["last-event-id"];
  return typeof header === "string" ? header : undefined;
}

/** The run and the event that the cursor of somebody names who follows a thread. Throws `invalid_request`. */
export function placeOf(cursor: string): { runId: string; after: Cursor } {
  const { run, seq, epoch } = CURSOR.exec(cursor)?.groups ?? {};
  if (run === undefined) throw notACursor();
  return { runId: run, after: { seq: Number(seq), epoch: Number(epoch) } };
}

/**
 * Where to continue; undefined when the run has ended and was read to its end. A viewer without a cursor gets what is still
 * kept. Throws `invalid_request` for a cursor of another run, and `events_expired` when what comes after it is no longer
 * kept, or the log has lost what the viewer has seen.
 */
export async function resumeAt(
  runs: RunManager,
  { owner, run }: { owner: Owner; run: RunRecord },
  cursor: string | undefined,
): Promise<Cursor | undefined> {
  const { first, last } = await runs.bounds(owner, run);
  const hasEnded = isSettled(run.status);
  if (hasEnded && last === 0) throw expired();
  if (cursor === undefined || cursor === "") return { seq: 0 };
  const parts = CURSOR.exec(cursor)?.groups;
  if (!parts || (parts.run !== undefined && parts.run !== run.id)) throw notACursor();
  const { epoch } = parts;
  const after = {
    seq: Number(parts.seq),
    ...given({ epoch: epoch === undefined ? undefined : Number(epoch) }),
  };
  if (after.seq > last || after.seq < first - 1) throw expired();
  if ((await runs.seen(owner, run, after)) !== after.seq) throw expired();
  return hasEnded && after.seq === last ? undefined : after;
}

const notACursor = () =>
  new AppError(
    "invalid_request",
    "This is not a cursor of this run. Use the id of the last event you got of it.",
  );

export const expired = () =>
  new AppError("events_expired", "The events after this cursor are not kept. Read the thread's messages.");
