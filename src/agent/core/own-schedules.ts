// The port to the schedules that an agent makes for the owner of its run.

import { type Run, type ValueKey, valueKey } from "./tool.ts";

/** When to start runs, and with which message. */
export interface NewSchedule {
  readonly cron?: string | undefined;
  readonly at?: string | undefined;
  readonly timezone: string;
  readonly until?: string | undefined;
  readonly input: string;
  /** `this`: the runs continue the thread of the run that makes the schedule. */
  readonly thread: "new" | "this";
}

export interface OwnSchedule extends Omit<NewSchedule, "thread"> {
  readonly id: string;
  readonly thread: string;
  readonly status: string;
  readonly next_runs: readonly string[];
}

/** An agent sees the schedules that it has made for this owner, and no other one. */
export interface OwnSchedules {
  /**
   * Makes a schedule of the run's owner and agent. Repeating it for the same call returns the schedule that is there. Throws
   * `invalid_request` for a timing that cannot be read or has passed, and `limit_exceeded`.
   */
  create(run: Run, callId: string, wanted: NewSchedule): Promise<OwnSchedule>;
  /** By id. */
  list(run: Run): Promise<readonly OwnSchedule[]>;
  /** Returns false if the agent has no such schedule. */
  delete(run: Run, id: string): Promise<boolean>;
}

/** Set for a run in which rules decide on each call before it starts. */
export const CALLS_ARE_DECIDED: ValueKey<true> = valueKey("calls are decided");
