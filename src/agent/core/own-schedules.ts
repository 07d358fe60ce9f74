// The port to the schedules that an agent creates for the owner of its run.

import { type Run, type ValueKey, valueKey } from "./tool.ts";

/** The times at which to start runs, and the message with which to start them. */
export interface NewSchedule {
  readonly cron?: string | undefined;
  readonly at?: string | undefined;
  readonly timezone: string;
  readonly until?: string | undefined;
  readonly input: string;
  /** With `this`, the runs continue the thread of the run that created the schedule. */
  readonly thread: "new" | "this";
}

export interface OwnSchedule extends Omit<NewSchedule, "thread"> {
  readonly id: string;
  readonly thread: string;
  readonly status: string;
  readonly next_runs: readonly string[];
}

/** An agent sees only the schedules that it has created for this owner. */
export interface OwnSchedules {
  /**
   * Creates a schedule for the run's owner and agent. If the same call already created one, returns that schedule. Throws
   * `invalid_request` for a time that is invalid or in the past, and `limit_exceeded`.
   */
  create(run: Run, callId: string, wanted: NewSchedule): Promise<OwnSchedule>;
  /** Returns the schedules, sorted by id. */
  list(run: Run): Promise<readonly OwnSchedule[]>;
  /** Returns false if the agent has no such schedule. */
  delete(run: Run, id: string): Promise<boolean>;
}

/** Set for a run whose calls are decided by rules before they start. */
export const CALLS_ARE_DECIDED: ValueKey<true> = valueKey("calls are decided");
