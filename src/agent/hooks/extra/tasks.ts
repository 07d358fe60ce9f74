// The task board that a tree of threads shares, and its tools. The board is stored with the root thread. Tasks change by
// compare-and-set, so only one of two competing agents gets a task.

import { z } from "zod";
import type { Owner } from "../../../protocol/ids.ts";
import type { AgentDefinition } from "../../core/agent.ts";
import { AppError } from "../../core/errors.ts";
import type { Hook, HookServices } from "../../core/hook.ts";
import { type ItemStore, MAX_ITEMS, type Shelf } from "../../core/items.ts";
import { rootOf } from "../../core/run.ts";
import { defineTool, type Run, type Tool } from "../../core/tool.ts";

export function create(_: unknown, { agent, items }: Pick<HookServices, "agent" | "items">): Hook {
  if (!items) return { name: "tasks" };
  return {
    name: "tasks",
    tools: () => [createTool(items), list(items), claim(items, agent), update(items, agent)],
  };
}

const placeOf = (run: Run): BoardKey => ({ owner: run.owner, root: rootOf(run) });
const nameOf = (run: Run, agent: AgentDefinition) => run.lineage?.name ?? agent.name;

const harmless = { idempotent: true, category: "plan", requiresPermission: false } as const;

function createTool(items: ItemStore): Tool {
  return defineTool({
    name: "create_tasks",
    description: `Adds tasks to the board that all agents on this work share. Use it for work that several \
agents divide among themselves. You do not need the board for your own plan.`,
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
    description:
      "Lists the tasks on the board with their status, the agent that works on them, and the tasks that must be completed first.",
    parameters: z.strictObject({ status: TaskStatus.optional().describe("Only tasks with this status.") }),
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
    description: `Claims a free task. Use it before you start the task. Do not claim a task that you \
give to another agent, because it is claimed for that agent.`,
    parameters: z.strictObject({ id: z.string().max(64) }),
    annotations: harmless,
    async execute({ id }, _, run) {
      await claimTask(items, placeOf(run), id, nameOf(run, agent));
      return `Task \`${id}\` is yours. Use update_task to report its outcome.`;
    },
  });
}

function update(items: ItemStore, agent: AgentDefinition): Tool {
  return defineTool({
    name: "update_task",
    description: `Reports the outcome of a task that you have claimed: completed or failed. Use pending to release \
a task, or to reopen one that failed or was canceled. Use canceled for a task that is no longer needed.`,
    parameters: z.strictObject({ id: z.string().max(64), status: TaskStatus.exclude(["in_progress"]) }),
    annotations: harmless,
    async execute({ id, status }, _, run) {
      // The root agent may release a task whose agent no longer works on it.
      const by = run.lineage && nameOf(run, agent);
      await changeStatus(items, placeOf(run), { id, status, by });
      return `Task \`${id}\` is ${status}.`;
    },
  });
}

/** An owner's board, stored with the root thread. */
export interface BoardKey {
  readonly owner: Owner;
  readonly root: string;
}

export const TaskStatus = z.enum(["pending", "in_progress", "completed", "failed", "canceled"]);
export type TaskStatus = z.infer<typeof TaskStatus>;

const Id = z
  .string()
  .max(64)
  .regex(/^[a-zA-Z0-9_-]+$/, "must consist of letters, digits, _ and -");

export const NewTask = z.strictObject({
  id: Id.describe("A short name, such as parse-dates."),
  title: z.string().trim().min(1).max(300).describe("The work to do."),
  blocked_by: z.array(Id).max(20).default([]).describe("Ids of tasks that must be completed first."),
});
export type NewTask = z.infer<typeof NewTask>;

const Task = NewTask.extend({
  status: TaskStatus,
  claimed_by: z.string().optional(),
  created_at: z.iso.datetime(),
});
export type Task = z.infer<typeof Task>;

/** The allowed next statuses. `completed` is final, so blocked tasks can rely on it. */
const NEXT: Readonly<Record<TaskStatus, readonly TaskStatus[]>> = {
  pending: ["in_progress", "canceled"],
  in_progress: ["pending", "completed", "failed", "canceled"],
  failed: ["in_progress", "pending", "canceled"],
  canceled: ["pending"],
  completed: [],
};

/** Returns the tasks, sorted from oldest to newest. */
export async function tasksOn(items: ItemStore, place: BoardKey): Promise<Task[]> {
  const tasks = (await items.list(shelfOf(place))).flatMap(({ value }) => Task.safeParse(value).data ?? []);
  return tasks.sort((a, b) => (a.created_at + a.id < b.created_at + b.id ? -1 : 1));
}

/** Returns the ids of the tasks that block this one and are not completed. */
export function openBlockers(task: Task, tasks: readonly Task[]): string[] {
  const completed = new Set(tasks.filter(({ status }) => status === "completed").map(({ id }) => id));
  return task.blocked_by.filter((id) => !completed.has(id));
}

/**
 * Adds unclaimed tasks and skips identical existing ones. If the board is full, removes the oldest finished
 * tasks. Throws `invalid_request` if any of the tasks could not be created.
 */
export async function createTasks(
  items: ItemStore,
  place: BoardKey,
  news: readonly NewTask[],
): Promise<void> {
  const there = await tasksOn(items, place);
  const missing = news.filter((task) => !there.some((each) => isSame(each, task)));
  const ordered = inDependencyOrder(missing, there);
  await makeRoom(items, place, { there, news: missing });
  const created_at = new Date().toISOString();
  for (const task of ordered) {
    const value: Task = { ...task, status: "pending", created_at };
    const written = await items.put(shelfOf(place), { key: task.id, value, version: 0 });
    if (!written) throw refused(`Another agent created a task \`${task.id}\` at the same time.`);
  }
}

/**
 * Claims a task. Claiming it again is allowed. Throws `invalid_request`, with a sentence for the model, when
 * the task does not exist, has ended, is blocked or belongs to another agent.
 */
export async function claimTask(
  items: ItemStore,
  place: BoardKey,
  id: string,
  claimer: string,
): Promise<void> {
  const isThere = await change({ items, place, id }, async (task) => {
    const { status, claimed_by = "another agent" } = task;
    if (status === "in_progress" && claimed_by === claimer) return task;
    if (status === "in_progress") throw refused(`Task \`${id}\` is taken by \`${claimed_by}\`.`);
    if (!NEXT[status].includes("in_progress")) throw refused(`Task \`${id}\` is ${status}.`);
    if (task.blocked_by.length > 0) {
      const open = openBlockers(task, await tasksOn(items, place));
      if (open.length > 0) throw refused(`Task \`${id}\` is blocked by ${quoted(open)}.`);
    }
    return { ...task, status: "in_progress", claimed_by: claimer };
  });
  if (!isThere) throw unknown(id);
}

export interface TaskChange {
  readonly id: string;
  readonly status: TaskStatus;
  /** The agent that claimed the task. Undefined for a caller that may change any task. */
  readonly by: string | undefined;
}

/**
 * Changes the status of a task. Throws `invalid_request`, with a sentence for the model, when the change is
 * not allowed.
 */
export async function changeStatus(
  items: ItemStore,
  place: BoardKey,
  { id, status, by }: TaskChange,
): Promise<void> {
  const isThere = await change({ items, place, id }, (task) => {
    if (task.status === status) return task;
    const { claimed_by, ...rest } = task;
    if (task.status === "in_progress" && by !== undefined && by !== claimed_by)
      throw refused(`Task \`${id}\` is taken by \`${claimed_by}\`. Only that agent can change it.`);
    if (!NEXT[task.status].includes(status))
      throw refused(`Task \`${id}\` is ${task.status}. ${howTo(task)}`);
    return { ...rest, ...(status !== "pending" && claimed_by ? { claimed_by } : {}), status };
  });
  if (!isThere) throw unknown(id);
}

export interface Settlement {
  readonly id: string;
  readonly status: "completed" | "failed" | "canceled";
  /** The agent that claimed the task. */
  readonly by: string;
}

/** Ends a task if `by` has claimed it. Leaves any other task unchanged, so the call is safe to repeat. */
export async function settleTask(
  items: ItemStore,
  place: BoardKey,
  { id, status, by }: Settlement,
): Promise<void> {
  await change({ items, place, id }, (task) =>
    task.status === "in_progress" && task.claimed_by === by ? { ...task, status } : task,
  );
}

const refused = (message: string) => new AppError("invalid_request", message);
const unknown = (id: string) => refused(`There is no task \`${id}\`.`);

interface TaskPlace {
  readonly items: ItemStore;
  readonly place: BoardKey;
  readonly id: string;
}

/**
 * The maximum number of attempts. Each conflict means that another change succeeded, so this limits the
 * number of concurrent changes.
 */
const MAX_TRIES = 50;

/**
 * Replaces a task with the result of `next`. Leaves it unchanged if `next` returns the same task. Returns
 * false when the task does not exist.
 */
async function change(
  { items, place, id }: TaskPlace,
  next: (task: Task) => Task | Promise<Task>,
): Promise<boolean> {
  const shelf = shelfOf(place);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const item = await items.get(shelf, id);
    const task = Task.safeParse(item?.value).data;
    if (!item || !task) return false;
    const value = await next(task);
    if (value === task || (await items.put(shelf, { key: id, value, version: item.version }))) return true;
  }
  throw new AppError("unavailable", `Too many agents are changing task \`${id}\` at once. Try again.`);
}

function howTo({ status }: Task): string {
  if (NEXT[status].includes("in_progress")) return "Claim it first.";
  return NEXT[status].length > 0 ? `It may become ${NEXT[status].join(" or ")}.` : "That is for good.";
}

const shelfOf = ({ owner, root }: BoardKey): Shelf => ({ owner, of: { thread: root }, kind: "tasks" });

const quoted = (ids: readonly string[]) => ids.map((id) => `\`${id}\``).join(", ");

const isSame = (a: NewTask, b: NewTask) =>
  a.id === b.id && a.title === b.title && a.blocked_by.join() === b.blocked_by.join();

/** Sorts tasks after the tasks that block them, which keeps cycles off the board. */
function inDependencyOrder(news: readonly NewTask[], there: readonly NewTask[]): NewTask[] {
  const taken = new Set(there.map(({ id }) => id));
  const twice = news.filter(({ id }, at) => taken.has(id) || news.findIndex((each) => each.id === id) < at);
  if (twice.length > 0) throw refused(`There is already another task ${quoted(twice.map(({ id }) => id))}.`);
  const known = new Set([...taken, ...news.map(({ id }) => id)]);
  const unknown = news.flatMap(({ blocked_by }) => blocked_by.filter((id) => !known.has(id)));
  if (unknown.length > 0) throw refused(`There is no task ${quoted(unknown)} to wait for.`);

  const ordered: NewTask[] = [];
  let rest = news;
  while (rest.length > 0) {
    const ready = rest.filter(({ blocked_by }) => blocked_by.every((id) => taken.has(id)));
    if (ready.length === 0)
      throw refused(`The tasks ${quoted(rest.map(({ id }) => id))} would wait for each other forever.`);
    for (const { id } of ready) taken.add(id);
    ordered.push(...ready);
    rest = rest.filter((task) => !ready.includes(task));
  }
  return ordered;
}

interface Room {
  readonly there: readonly Task[];
  readonly news: readonly NewTask[];
}

async function makeRoom(items: ItemStore, place: BoardKey, { there, news }: Room): Promise<void> {
  const over = there.length + news.length - MAX_ITEMS;
  if (over <= 0) return;
  const isOver = ({ status }: Task) => status === "completed" || status === "canceled";
  const awaited = [...there.filter((task) => !isOver(task)), ...news].flatMap(({ blocked_by }) => blocked_by);
  const old = there.filter((task) => isOver(task) && !awaited.includes(task.id)).slice(0, over);
  if (old.length < over)
    throw refused(`The board can contain at most ${MAX_ITEMS} tasks. Complete or cancel some of them first.`);
  for (const { id } of old) await items.delete(shelfOf(place), id);
}
