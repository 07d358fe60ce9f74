// The tools by which agents plan on a shared task board, take tasks from it and say what became of them.

import { z } from "zod";
import type { AgentDefinition } from "../core/agent.ts";
import { defineHook } from "../core/hook.ts";
import type { ItemStore } from "../core/items.ts";
import { rootOf } from "../core/run.ts";
import { defineTool, type Run, type Tool } from "../core/tool.ts";
import {
  changeStatus,
  claimTask,
  createTasks,
  NewTask,
  openBlockers,
  type Place,
  type Task,
  TaskStatus,
  tasksOn,
} from "./task-board.ts";

export const tasks = defineHook({
  name: "tasks",
  userMay: "switch",
  tools: ["create_tasks", "list_tasks", "claim_task", "update_task"],
  options: z.strictObject({}),
  activeByDefault: () => false,
  create(_, { agent, items }) {
    if (!items) return { name: "tasks" };
    return {
      name: "tasks",
      tools: () => [create(items), list(items), claim(items, agent), update(items, agent)],
    };
  },
});

const placeOf = (run: Run): Place => ({ owner: run.owner, root: rootOf(run) });
const nameOf = (run: Run, agent: AgentDefinition) => run.lineage?.name ?? agent.name;

const harmless = { idempotent: true, category: "plan", requiresPermission: false } as const;

function create(items: ItemStore): Tool {
  return defineTool({
    name: "create_tasks",
    description: `Adds tasks to the board that all agents on this work share. Use it for work that several \
agents divide among themselves; a plan of your own needs no board.`,
    parameters: z.strictObject({ tasks: z.array(NewTask).min(1).max(50) }),
    annotations: harmless,
    async execute({ tasks }, _, run) {
      await createTasks(items, placeOf(run), tasks);
      return `On the board: ${tasks.map(({ id }) => `\`${id}\``).join(", ")}.`;
    },
  });
}

function list(items: ItemStore): Tool {
  return defineTool({
    name: "list_tasks",
    description: "Lists the tasks on the board: status, who is at it, and what must be completed before.",
    parameters: z.strictObject({ status: TaskStatus.optional().describe("Only those with this status.") }),
    annotations: { readOnly: true, category: "plan", requiresPermission: false },
    async execute({ status }, _, run) {
      const tasks = await tasksOn(items, placeOf(run));
      const shown = tasks.filter((task) => status === undefined || task.status === status);
      if (shown.length === 0) return status ? `No task is ${status}.` : "There are no tasks on the board.";
      return shown.map((task) => lineOf(task, openBlockers(task, tasks))).join("\n");
    },
  });
}

function lineOf({ id, title, status, claimed_by }: Task, blockers: readonly string[]): string {
  const notes = [
    ...(claimed_by ? [`claimed by ${claimed_by}`] : []),
    ...(status === "pending" && blockers.length > 0 ? [`blocked by ${blockers.join(", ")}`] : []),
  ];
  const line = title.replaceAll(/\s+/g, " ");
  return `- [${status}] ${id}: ${line}${notes.length > 0 ? ` (${notes.join("; ")})` : ""}`;
}

function claim(items: ItemStore, agent: AgentDefinition): Tool {
  return defineTool({
    name: "claim_task",
    description: `Takes a task that nobody is at, before you begin with it. A task that you give to another \
agent is claimed for it: do not claim it yourself.`,
    parameters: z.strictObject({ id: z.string().max(64) }),
    annotations: harmless,
    async execute({ id }, _, run) {
      await claimTask(items, placeOf(run), id, nameOf(run, agent));
      return `Task \`${id}\` is yours. Say with update_task what became of it.`;
    },
  });
}

function update(items: ItemStore, agent: AgentDefinition): Tool {
  return defineTool({
    name: "update_task",
    description: `Says what became of a task that you have claimed: completed or failed. With pending you give \
it back, or open one again that failed or was canceled; canceled is for what need not be done any more.`,
    parameters: z.strictObject({ id: z.string().max(64), status: TaskStatus.exclude(["in_progress"]) }),
    annotations: harmless,
    async execute({ id, status }, _, run) {
      // Who leads may free what an agent has left behind that is no longer at work.
      const by = run.lineage && nameOf(run, agent);
      await changeStatus(items, placeOf(run), { id, status, by });
      return `Task \`${id}\` is ${status}.`;
    },
  });
}
