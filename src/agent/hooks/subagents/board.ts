// The board where a child's task is claimed and settled. A plugin or program can provide it. Otherwise, it is the built-in
// board.

import { AppError, messageOf } from "../../core/errors.ts";
import type { HookServices } from "../../core/hook.ts";
import type { TaskBoard } from "../../core/task-board.ts";

/**
 * Returns the board, or undefined if no board was provided and no item store exists. Loads the code of the
 * built-in board with its first task.
 */
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

/**
 * Converts an error in a plugin's or program's code to a refusal with the same message. Errors of tools are
 * converted in the same way.
 */
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
