// The agent's plan: a list under the state key `todos`, and the tool that replaces it.

import { z } from "zod";
import { defineHook } from "../core/hook.ts";
import { setState, withResult } from "../core/run.ts";
import { defineTool } from "../core/tool.ts";

const STATUSES = ["pending", "in_progress", "done"] as const;

const Todo = z.strictObject({
  id: z.string().min(1).max(100),
  title: z.string().trim().min(1, "must not be empty").max(500),
  status: z.enum(STATUSES),
});
type Todo = z.infer<typeof Todo>;

const writeTodos = defineTool({
  name: "write_todos",
  description: `Keeps the plan of your work, which the user sees. Use it for tasks of three or more steps. \
Send the complete list each time, because it replaces the previous one. Set an item to in_progress when you begin it \
and to done as soon as it is finished.`,
  parameters: z.strictObject({
    todos: z.array(Todo).max(100).refine(haveOwnIds, "every todo needs a unique id"),
  }),
  annotations: { idempotent: true, category: "plan", requiresPermission: false },
  async *execute({ todos }, _, run) {
    yield* withResult(setState(run, "todos", todos));
    return confirmation(todos);
  },
});

export const todos = defineHook({
  name: "todos",
  userMay: "switch",
  tools: ["write_todos"],
  options: z.strictObject({}),
  activeByDefault: () => true,
  create: () => ({
    name: "todos",
    tools: () => [writeTodos],
    async *beforeAgent(run) {
      if (!run.state.has("todos")) yield* setState(run, "todos", []);
    },
  }),
});

function haveOwnIds(todos: readonly Todo[]): boolean {
  return new Set(todos.map((todo) => todo.id)).size === todos.length;
}

function confirmation(todos: readonly Todo[]): string {
  const counts = STATUSES.map(
    (status) => `${todos.filter((todo) => todo.status === status).length} ${status}`,
  );
  return `The list has ${todos.length} todos now: ${counts.join(", ")}.`;
}
