// The board on which a child's task is claimed and settled: that of a plugin or a program, else the built-in one.

import { AppError, messageOf } from "../../core/errors.ts";
import type { HookServices } from "../../core/hook.ts";
import type { TaskBoard } from "../../core/task-board.ts";

/** Undefined without a board of its own and without a store. The built-in board's code is loaded with its first task. */
export function boardFor({ tasks, items }: Pick<HookServices, "tasks" | "items">): TaskBoard | undefined {
  if (tasks) return withRefusals(tasks);
  if (!items) return undefined;
  const builtIn = () => import("../extra/tasks.ts");
  return {
    async claim({ id, ...board }, agent) {
      await (await builtIn()).claimTask(items, board, id, agent);
    },
    async settle({ id, ...board }, by, status) {
      await (await builtIn()).settleTask(items, board, { id, status, by });
    },
  };
}

/** What own code throws is a refusal in its own words, as with a tool. */
function withRefusals(board: TaskBoard): TaskBoard {
  const refusing = (error: unknown) => {
    throw error instanceof AppError
      ? error
      : new AppError("invalid_request", messageOf(error), { cause: error });
  };
  return {
    claim: async (...args) => board.claim(...args).catch(refusing),
    settle: async (...args) => board.settle(...args).catch(refusing),
  };
}
