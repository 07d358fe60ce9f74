// Computes the next record when a user writes a schedule.

import type { Document } from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import { recordOf, type ScheduleRecord, type ScheduleSpec } from "./schedule.ts";
import { slotsAfter } from "./timing.ts";

export interface ScheduleWrite {
  readonly spec: ScheduleSpec;
  /** The id of the API key that writes the schedule. The schedule is paused once this key can no longer start runs. */
  readonly api_key?: string | undefined;
  /** The store's time, in milliseconds since 1970. */
  readonly now: number;
}

/**
 * Keeps the due slot if the schedule's times stay the same, so changing its input does not lose a run. A schedule that
 * resumes after a pause continues with its next time from now on. Throws `invalid_request` if the schedule has no
 * future times.
 */
export function recordAfter(
  before: Document | undefined,
  { spec, api_key, now }: ScheduleWrite,
): ScheduleRecord {
  const old = before && recordOf(before.body);
  const isSame = old !== undefined && old.pause === undefined && timesOf(old.spec) === timesOf(spec);
  const next = isSame ? old.next : slotsAfter(spec, now, 1)[0];
  if (next === undefined && !isSame && !spec.paused) throw over(spec);
  return {
    spec,
    next: spec.paused ? undefined : next,
    retry: isSame && !spec.paused ? old.retry : undefined,
    pause: spec.paused ? requested(old?.pause?.since ?? now) : undefined,
    slot: old?.slot,
    run: old?.run,
    api_key,
    created: old?.created ?? now,
    updated: now,
  };
}

const timesOf = ({ cron, at, timezone, until }: ScheduleSpec) => [cron, at, timezone, until].join("\n");

const requested = (since: number) => ({ reason: "requested", message: "Paused by request.", since }) as const;

function over({ at, until }: ScheduleSpec): AppError {
  const [name, time] = until === undefined ? ["at", at] : ["until", until];
  return new AppError("invalid_request", `${name}: no time is left before \`${time}\`. Use a later time.`);
}
