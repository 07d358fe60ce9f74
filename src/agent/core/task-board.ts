// The port to the task board that agents share, with each task's agent and outcome.

import type { Owner } from "../../protocol/ids.ts";

/** A task on a board. A user's thread and the threads of its subagents share one board. */
export interface TaskRef {
  readonly owner: Owner;
  /** The user's thread for which all of these agents work. */
  readonly root: string;
  readonly id: string;
}

export interface TaskBoard {
  /**
   * Claims a task for an agent that is about to start it. The agent may claim it again. Throws an `AppError`
   * with a sentence for the model when the agent may not have the task; the agent is then not started.
   */
  claim(task: TaskRef, agent: string): Promise<void>;
  /** Records the outcome of a task that the agent has claimed. May be called again with the same status. */
  settle(task: TaskRef, agent: string, status: "completed" | "failed" | "canceled"): Promise<void>;
}
