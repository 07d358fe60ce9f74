// Giving tasks to other agents and waiting for what they report.

import { z } from "zod";
import { AppError, messageOf } from "../../core/errors.ts";
import { interleave } from "../../core/interleave.ts";
import type { ToolCall } from "../../core/message.ts";
import { isSettled } from "../../core/records.ts";
import type { Stream } from "../../core/stream.ts";
import {
  defineTool,
  done,
  failed,
  interrupted,
  type Run,
  type Tool,
  type ToolAnnotations,
  type ToolResult,
} from "../../core/tool.ts";
import { type Attendance, attend } from "./await-child.ts";
import {
  beginner,
  type Child,
  childrenOf,
  type Enlisted,
  enlist,
  hasEnded,
  keepChildren,
  lineageOf,
  type Task,
} from "./child.ts";
import { CANCELLED, type Report, reportOn, settle, tell } from "./result.ts";
import { available, lineOf, type Team } from "./subagent-config.ts";

/** Of one call. */
export const MAX_TASKS = 16;

export const TaskFields = z.strictObject({
  agent: z.string().min(1).max(64).describe("Who does it: one of list_agents."),
  task: z.string().trim().min(1).max(16_000).describe("What is to be done, complete in itself."),
  context: z
    .string()
    .max(200_000)
    .describe(
      "What the agent must know for it: it sees nothing of this conversation. At most 16,000 characters are told.",
    ),
  task_id: z.string().max(64).optional().describe("Its id on the task board, if it is there."),
});

/** A repeated call finds what it has begun. */
export const DELEGATES: ToolAnnotations = { idempotent: true, waits: true, requiresPermission: false };

export function delegate(team: Team): Tool {
  return defineTool({
    name: "delegate",
    description: `Gives tasks to other agents, all at once, and waits until every one of them has reported. Use it for \
work that can be described completely, and for several pieces of work that do not depend on each other.`,
    parameters: z.strictObject({ tasks: z.array(TaskFields).min(1).max(MAX_TASKS) }),
    annotations: DELEGATES,
    execute: ({ tasks }, call, run) => delegated(team, { call, tasks }, run),
  });
}

export function task(team: Team): Tool {
  return defineTool({
    name: "task",
    description:
      "Gives one task to another agent and waits for its report. For several at once use delegate.",
    parameters: TaskFields,
    annotations: DELEGATES,
    execute: (task, call, run) => delegated(team, { call, tasks: [task] }, run),
  });
}

async function* delegated(
  team: Team,
  { call, tasks }: { call: ToolCall; tasks: readonly Task[] },
  run: Run,
): Stream<ToolResult> {
  const enlisted = yield* enlist(team, { call, tasks, background: false }, run);
  const idOf = (index: number) => pathId(call, index, tasks.length);
  const works = enlisted.map((each, index) => work(team, { call, id: idOf(index), each }, run));
  const done = yield* interleave(works, team.concurrency);
  if (done.some((each) => each.status === "waiting")) return interrupted();
  const text = done.map(({ text }) => text).join("\n\n");
  return done.every(({ status }) => status === "refused") ? failed(text) : { status: "done", output: text };
}

/** What stands in the path of a call's `index`-th child. */
export const pathId = ({ id }: ToolCall, index: number, count: number) =>
  count === 1 ? id : `${id}#${index + 1}`;

interface Done {
  readonly status: Attendance["status"] | "refused";
  readonly text: string;
}

async function* work(
  team: Team,
  { call, id, each }: { call: ToolCall; id: string; each: Enlisted },
  run: Run,
): Stream<Done> {
  if ("fault" in each) return { status: "refused", text: `[not begun] ${each.task.agent}: ${each.fault}` };
  const { child } = each;
  const attendance = yield* attend(team, { call, id, child, begin: beginner(team, each, run) }, run);
  const { status } = attendance;
  return { status, text: status === "ended" ? tell(child, attendance.report) : "" };
}

// Work that others do while the agent does something else, and after its own run has ended. A child in the background is
// known by the id of its thread.
const Ids = z.array(z.string().min(1).max(128)).min(1).max(MAX_TASKS);

export function startTask(team: Team): Tool {
  return defineTool({
    name: "start_task",
    description: `Gives a task to another agent and returns at once, with an id: it is worked on in the background, also \
after you have answered. Look with check_tasks, wait with wait_tasks.`,
    parameters: TaskFields,
    annotations: { ...DELEGATES, waits: false },
    execute: (task, call, run) => begun(team, { call, task }, run),
  });
}

async function* begun(
  team: Team,
  { call, task }: { call: ToolCall; task: Task },
  run: Run,
): Stream<ToolResult> {
  const [each] = yield* enlist(team, { call, tasks: [task], background: true }, run);
  if (!each || "fault" in each) return failed(each?.fault ?? "");
  const { child } = each;
  if (hasEnded(child)) return failed(child.summary ?? "");
  try {
    if (!child.run_id) {
      assertRoom(child, run);
      const record = await beginner(team, each, run)(lineageOf(team, child, call, run));
      yield* keepChildren(run, [{ ...child, run_id: record.id }]);
    }
    return done(`[${child.name}] agent ${child.agent}: started, id ${child.thread_id}`);
  } catch (error) {
    run.signal.throwIfAborted();
    const report = { status: "failed", summary: messageOf(error) } as const;
    yield* settle(team, { child: { ...child, told: true }, report }, run);
    return failed(report.summary);
  }
}

function assertRoom({ thread_id }: Child, run: Run): void {
  const others = childrenOf(run).filter((other) => other.background && other.thread_id !== thread_id);
  if (others.filter((other) => !hasEnded(other)).length < MAX_TASKS) return;
  throw new AppError("limit_exceeded", TOO_MANY);
}

const TOO_MANY = `${MAX_TASKS} tasks are in the background already. Wait for one of them, or cancel it.`;

export function checkTasks(team: Team): Tool {
  return defineTool({
    name: "check_tasks",
    description: "Says how tasks in the background are getting on, without waiting for them.",
    parameters: z.strictObject({
      ids: Ids.optional().describe("Default: all that you were not told the end of."),
    }),
    annotations: { idempotent: true, requiresPermission: false },
    async *execute({ ids }, _, run) {
      const chosen = choose(ids, run);
      if ("fault" in chosen) return failed(chosen.fault);
      const texts: string[] = [];
      for (const child of chosen.children) texts.push(yield* look(team, child, run));
      return texts.join("\n\n");
    },
  });
}

export function waitTasks(team: Team): Tool {
  return defineTool({
    name: "wait_tasks",
    description:
      "Waits for tasks in the background, until any or all of them have ended, and returns their reports.",
    parameters: z.strictObject({
      ids: Ids.optional().describe("Default: all that you were not told the end of."),
      mode: z.enum(["any", "all"]).default("all"),
    }),
    annotations: DELEGATES,
    execute: ({ ids, mode }, call, run) => waited(team, { call, ids, mode }, run),
  });
}

export function cancelTask(team: Team): Tool {
  return defineTool({
    name: "cancel_task",
    description: "Ends a task in the background.",
    parameters: z.strictObject({ id: z.string().min(1).max(128) }),
    annotations: { idempotent: true, requiresPermission: false },
    async *execute({ id }, _, run) {
      const chosen = choose([id], run);
      if ("fault" in chosen) return failed(chosen.fault);
      const [child] = chosen.children;
      if (!child) return failed(NONE);
      const ended = yield* ifEnded(team, child, run);
      if (ended) return tell(child, ended);
      const newest = await team.subagents.newest(run.owner, id);
      if (newest) await team.subagents.stop(run.owner, newest, "cancel");
      yield* settle(team, { child: { ...child, told: true }, report: CANCELLED }, run);
      return tell(child, CANCELLED);
    },
  });
}

const NONE = "There are no tasks in the background that you were not told the end of.";

function choose(ids: readonly string[] | undefined, run: Run): { children: Child[] } | { fault: string } {
  const all = childrenOf(run).filter(({ background }) => background);
  const children = all.filter(({ thread_id, told }) => (ids ? ids.includes(thread_id) : !told));
  const missing = ids?.find((id) => !children.some(({ thread_id }) => thread_id === id));
  if (missing !== undefined) return { fault: `There is no task \`${missing}\` in the background.` };
  return children.length > 0 ? { children } : { fault: NONE };
}

async function* look(team: Team, child: Child, run: Run): Stream<string> {
  const ended = yield* ifEnded(team, child, run);
  if (ended) return tell(child, ended);
  const newest = await team.subagents.newest(run.owner, child.thread_id);
  const state = newest?.status === "interrupted" ? "waits for somebody's answer" : newest?.status;
  return `[${child.name}] agent ${child.agent}: ${state ?? "gone"}, id ${child.thread_id}`;
}

/** The report of a child that has ended, which is settled with that. */
async function* ifEnded(team: Team, child: Child, run: Run): Stream<Report | undefined> {
  const { owner } = run;
  const newest = await team.subagents.newest(owner, child.thread_id);
  const isOver = !newest || (isSettled(newest.status) && newest.status !== "interrupted");
  if (!isOver && !hasEnded(child)) return undefined;
  const report = newest
    ? reportOn(newest, newest.id, await team.subagents.thread(owner, child.thread_id))
    : { status: "failed" as const, summary: "Its thread was deleted." };
  const told: Child = { ...child, told: true };
  if (hasEnded(child)) yield* keepChildren(run, [told]);
  else yield* settle(team, { child: told, report }, run);
  return report;
}

interface Waited {
  readonly call: ToolCall;
  readonly ids: readonly string[] | undefined;
  readonly mode: "any" | "all";
}

async function* waited(team: Team, { call, ids, mode }: Waited, run: Run): Stream<ToolResult> {
  const chosen = choose(ids, run);
  if ("fault" in chosen) return failed(chosen.fault);
  const { children } = chosen;
  const enough = new AbortController();
  const wait = async function* (child: Child, index: number): Stream<Attendance> {
    const id = pathId(call, index, children.length);
    const attendance = yield* attend(team, { call, id, child, until: enough.signal }, run);
    if (attendance.status === "ended" && mode === "any") enough.abort();
    return attendance;
  };
  const all = yield* interleave(children.map(wait), children.length);
  const ended = all.filter((each) => each.status === "ended");
  const isEnough = mode === "any" && ended.length > 0;
  if (!isEnough && all.some(({ status }) => status === "waiting")) return interrupted();
  yield* keepChildren(
    run,
    ended.map(({ child }) => ({ ...child, told: true })),
  );
  return { status: "done", output: all.map(textOf).join("\n\n") };
}

function textOf(attendance: Attendance): string {
  const { child } = attendance;
  if (attendance.status === "ended") return tell(child, attendance.report);
  const state = attendance.status === "waiting" ? "waits for somebody's answer" : "goes on";
  return `[${child.name}] agent ${child.agent}: ${state}, id ${child.thread_id}`;
}

// Who there is to give tasks to.

export function listAgents(team: Team): Tool {
  return defineTool({
    name: "list_agents",
    description: "Lists the agents that you may give tasks to.",
    parameters: z.strictObject({}),
    annotations: { readOnly: true, category: "plan", requiresPermission: false },
    execute: async () => available(team).map(lineOf).join("\n") || "There are none.",
  });
}
