// Slots are the times at which a schedule should start a run. Decides which missed slots are still started.

import { AppError } from "../../agent/core/errors.ts";
import { checkCron, checkTimeZone, timeBefore, timesAfter } from "./cron.ts";

/** When a schedule starts runs: at every time that matches `cron`, or once. */
export interface Timing {
  readonly cron?: string | undefined;
  /** The time of the only run, in ISO 8601 with an offset. */
  readonly at?: string | undefined;
  readonly timezone: string;
  readonly until?: string | undefined;
}

/** `none`: skip missed slots. `latest`: start the most recent of them. `all`: start all of them, oldest first. */
export type CatchUp = "none" | "latest" | "all";

/** The time after a slot during which it does not count as missed, in milliseconds. */
export const GRACE_MS = 60_000;

/** Throws `invalid_request` for an invalid timing, and for a cron line that never matches. */
export function checkTiming({ cron, at, timezone }: Timing): void {
  if ((cron === undefined) === (at === undefined))
    throw new AppError("invalid_request", "Send either `cron`, for repeated runs, or `at`, for one run.");
  checkTimeZone(timezone);
  if (cron === undefined) return;
  checkCron(cron);
  if (timesAfter(cron, timezone, Date.now(), 1).length === 0)
    throw new AppError(
      "invalid_request",
      `cron: \`${cron}\` matches no day, because none of its months has that day.`,
    );
}

/** Returns at most `count` slots after a given time, oldest first. All times are in milliseconds since 1970. */
export function slotsAfter({ cron, at, timezone, until }: Timing, after: number, count: number): number[] {
  const last = until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until);
  const slots = cron === undefined ? [Date.parse(at ?? "")] : timesAfter(cron, timezone, after, count);
  return slots.filter((slot) => slot > after && slot <= last);
}

export interface SlotDecision {
  /** The slot to start now. Undefined if all due slots were missed. */
  readonly start?: number;
  /** The time of the last slot that this decision completes, started or skipped. */
  readonly done: number;
}

/**
 * Decides which of the due slots to start. `next` is the first slot that is not done, and `now` must not be before it.
 * A slot that is being retried never counts as missed.
 */
export function dueSlot(
  timing: Timing,
  catchUp: CatchUp,
  { next, now, isRetried }: { readonly next: number; readonly now: number; readonly isRetried: boolean },
): SlotDecision {
  if (isRetried || catchUp === "all") return { start: next, done: next };
  const latest = latestSlot(timing, next, now);
  return catchUp === "latest" || now - latest <= GRACE_MS
    ? { start: latest, done: latest }
    : { done: latest };
}

/** Returns the most recent slot from `next` to `now`. */
function latestSlot({ cron, timezone, until }: Timing, next: number, now: number): number {
  const last = until === undefined ? now : Math.min(now, Date.parse(until));
  const latest = cron === undefined ? next : timeBefore(cron, timezone, last);
  return Math.max(next, latest ?? next);
}
