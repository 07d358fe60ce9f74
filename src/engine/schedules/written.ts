// The record that follows when a user writes a schedule.

import type { Document } from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import { recordOf, type ScheduleRecord, type ScheduleSpec } from "./schedule.ts";
import { slotsAfter } from "./timing.ts";

export interface Writing {
  readonly spec: ScheduleSpec;
  /** The id of the API key that writes it: the runs end with this key. */
  readonly api_key?: string | undefined;
  /** The store's clock, in ms since 1970. */
  readonly now: number;
}

/**
 * While the times of a schedule stay the same, so does the slot that is due: changing its input must not lose a run. A schedule that
 * continues after a pause begins with the next time from now. Throws `invalid_request` when no time is left.
 */
export function recordAfter(before: Document | undefined, { spec, api_key, now }: Writing): ScheduleRecord {
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
