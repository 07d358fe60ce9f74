// Decides what to do with a temporary thread, based on the state of its run.

import { createHash } from "node:crypto";
import { z } from "zod";
import type { RunRecord, ThreadStatus } from "../../agent/core/records.ts";

/**
 * A temporary thread, stored under the thread's id. `since` is the time at which the run was requested, in milliseconds
 * since 1970.
 */
export const TemporaryThread = z.object({
  since: z.number(),
  /** True if the run has an idempotency key that the client can use to request it again. */
  is_keyed: z.boolean(),
  /** `ending`: the thread is being deleted. `ended`: the thread is deleted, and only its key is remembered. */
  state: z.enum(["live", "ending", "ended"]),
});
export type TemporaryThread = z.infer<typeof TemporaryThread>;

/** How long a temporary thread with open questions waits for an answer, in milliseconds. */
export const QUESTIONS_MS = 24 * 3_600_000;
/** How long a key is remembered after its thread is deleted, in milliseconds. */
export const KEY_MS = 3_600_000;
/** The time that a repeated request has to find its run, in milliseconds. */
export const REPEAT_MS = 60_000;
/** The maximum time, in milliseconds, between two checks of a thread that is active or is waiting for an answer. */
const BUSY_MS = 30_000;
const ASKING_LOOK_MS = 5 * 60_000;
/** The time of the last check for a thread that does not exist yet, in milliseconds after its run was requested. */
const MISSING_MS = 10 * 60_000;

export type NextStep =
  | { readonly as: "wait"; readonly until: number }
  | { readonly as: "delete" }
  /** The thread does not exist. */
  | { readonly as: "forget" };

export interface ThreadFacts {
  readonly temporary: TemporaryThread;
  /** Absent if the thread does not exist. */
  readonly status: ThreadStatus | undefined;
  readonly newest: Pick<RunRecord, "ended_at"> | undefined;
}

/** `keepMs` is the time for which the thread stays readable after its last run ends. */
export function nextStep({ temporary, status, newest }: ThreadFacts, keepMs: number, now: number): NextStep {
  if (status === undefined) {
    const last = temporary.since + MISSING_MS;
    return now < last ? { as: "wait", until: last } : { as: "forget" };
  }
  if (status === "busy") return { as: "wait", until: now + pauseOf(keepMs) };
  const isAsking = status === "interrupted";
  const stays = isAsking ? QUESTIONS_MS : keepMs;
  const ended = newest?.ended_at === undefined ? temporary.since : Date.parse(newest.ended_at);
  // Clocks may differ, so the wait never exceeds the whole period, counted from now.
  const until = Math.min(ended + stays, now + stays);
  if (until <= now) return { as: "delete" };
  // Checks regularly, because no signal reports that a question was answered.
  return { as: "wait", until: isAsking ? Math.min(until, now + pauseOf(keepMs, ASKING_LOOK_MS)) : until };
}

/** Returns the time until the next check. Threads that are kept for a short time are checked more often. */
export const pauseOf = (keepMs: number, most = BUSY_MS) => Math.min(most, Math.max(keepMs, 1_000));

/**
 * Returns the id of the thread for a run that a user starts with a key. A repeated request finds the same thread and
 * run. Runs that are kept never share a thread with runs that are not.
 */
export function keyedThreadId(key: string, isKept: boolean): string {
  const digest = createHash("sha256")
    .update(`${isKept ? "kept" : "temporary"} ${key}`)
    .digest("hex");
  return `th_${BigInt(`0x${digest}`).toString(36).slice(0, ID_LENGTH)}`;
}

/** Has the same length as other ids. Its characters are 36 letters and digits, which gives 113 bits. */
const ID_LENGTH = 22;
