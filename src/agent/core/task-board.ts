// The port to the task board that agents share, with each task's agent and outcome.

import type { Owner } from "../../protocol/ids.ts";

/** A task on a board. A user's thread and the threads of its subagents share one board. */
export interface TaskRef {
  readonly owner: Owner;
  /** The user's thread that all of these agents work for. */
  readonly root: string;
  readonly id: string;
}

export interface TaskBoard {
  /**
   * Claims a task for an agent that is about to start it. The agent may claim it again. If the agent may not
   * have the task, throws an `AppError` with a sentence for the model, and the agent is not started.
   */
  claim(task: TaskRef, agent: string): Promise<void>;
  /**
   * Records the outcome of a task that the agent has claimed. It can be called again with the same status.
   */
  settle(task: TaskRef, agent: string, status: "completed" | "failed" | "canceled"): Promise<void>;
}
