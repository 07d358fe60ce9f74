// What is to be done about a temporary thread, by what is known of it: the thread of a run that was started without one and is not kept.

import { createHash } from "node:crypto";
import { z } from "zod";
import type { RunRecord, ThreadStatus } from "../../agent/core/records.ts";

/** A temporary thread, under the thread's id. `since`: when the run was asked for, in ms since 1970. */
export const TemporaryThread = z.object({
  since: z.number(),
  /** Whether its run has an idempotency key, with which its client may ask for the run again. */
  is_keyed: z.boolean(),
  /** `ending`: the thread is being deleted. `ended`: it is deleted, and only the key is remembered. */
  state: z.enum(["live", "ending", "ended"]),
});
export type TemporaryThread = z.infer<typeof TemporaryThread>;

/** How long open questions of a temporary thread wait for an answer, in ms. */
export const QUESTIONS_MS = 24 * 3_600_000;
/** How long a key is remembered once its thread is deleted, in ms. */
export const KEY_MS = 3_600_000;
/** Time for a repeated request to find its run, in ms. */
export const REPEAT_MS = 60_000;
/** Maximum time between two looks at a thread that is at work, or that waits for an answer, in ms. */
const BUSY_MS = 30_000;
const ASKING_LOOK_MS = 5 * 60_000;
/** When the last look is taken at a thread that does not exist yet, in ms after its run was asked for. */
const MISSING_MS = 10 * 60_000;

export type NextStep =
  | { readonly as: "wait"; readonly until: number }
  | { readonly as: "delete" }
  /** There is no such thread. */
  | { readonly as: "forget" };

export interface ThreadFacts {
  readonly temporary: TemporaryThread;
  /** Absent: there is no such thread. */
  readonly status: ThreadStatus | undefined;
  readonly newest: Pick<RunRecord, "ended_at"> | undefined;
}

/** `keepMs`: how long the thread stays readable once its last run has ended. */
export function nextStep({ temporary, status, newest }: ThreadFacts, keepMs: number, now: number): NextStep {
  if (status === undefined) {
    const last = temporary.since + MISSING_MS;
    return now < last ? { as: "wait", until: last } : { as: "forget" };
  }
  if (status === "busy") return { as: "wait", until: now + pauseOf(keepMs) };
  const isAsking = status === "interrupted";
  const stays = isAsking ? QUESTIONS_MS : keepMs;
  const ended = newest?.ended_at === undefined ? temporary.since : Date.parse(newest.ended_at);
  // Clocks may differ: never longer than the whole time from now.
  const until = Math.min(ended + stays, now + stays);
  if (until <= now) return { as: "delete" };
  // Nothing tells when a question is answered.
  return { as: "wait", until: isAsking ? Math.min(until, now + pauseOf(keepMs, ASKING_LOOK_MS)) : until };
}

/** A thread that is kept for a short time is looked at more often. */
export const pauseOf = (keepMs: number, most = BUSY_MS) => Math.min(most, Math.max(keepMs, 1_000));

/**
 * The thread of a run that a user starts under a key: a repeated request finds it, and its run. A run that is to be kept never shares
 * the thread of one that is not.
 */
export function keyedThreadId(key: string, isKept: boolean): string {
  const digest = createHash("sha256")
    .update(`${isKept ? "kept" : "temporary"} ${key}`)
    .digest("hex");
  return `th_${BigInt(`0x${digest}`).toString(36).slice(0, ID_LENGTH)}`;
}

/** As other ids have: of 36 letters and digits each, 113 bits. */
const ID_LENGTH = 22;
