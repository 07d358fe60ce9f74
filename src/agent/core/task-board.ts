// The port to the board of tasks that agents share: which agent is at a task, and what became of it.

import type { Owner } from "../../protocol/ids.ts";

/** The task of a board. A family of threads shares one: a user's thread and those of its subagents. */
export interface TaskRef {
  readonly owner: Owner;
  /** The user's thread, for which all of them work. */
  readonly root: string;
  readonly id: string;
}

export interface TaskBoard {
  /**
   * Claims a task for an agent that is about to start it; claiming it again is allowed. Throws an `AppError` with a sentence for the
   * model where that agent may not have it: the agent is not started then.
   */
  claim(task: TaskRef, agent: string): Promise<void>;
  /** Says what became of a task that the agent has claimed. May be called again with the same status. */
  settle(task: TaskRef, agent: string, status: "completed" | "failed" | "canceled"): Promise<void>;
}
