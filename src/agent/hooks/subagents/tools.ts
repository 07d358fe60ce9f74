// The tools for delegating tasks in the foreground (delegate, task) and in the background (start_task, check_tasks,
// wait_tasks, cancel_task). Background work continues after the run ends. The id of a background task is the id of its
// thread.

import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import { failureText } from "../../core/failures.ts";
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
import { interleave } from "../../core/tool-calls.ts";
import { awaitChild, type ChildOutcome } from "./await-child.ts";
import {
  type Child,
  childrenOf,
  hasEnded,
  type RegisteredTask,
  registerChildren,
  type SubagentTask,
  saveChildren,
  startChild,
} from "./child.ts";
import { CANCELLED, formatReport, type Report, recordResult, reportFor } from "./result.ts";
import { available, lineOf, type SubagentConfig } from "./subagent-config.ts";

/** The maximum number of tasks in one call, and the maximum number in the background. */
const MAX_TASKS = 16;

const TaskFields = z.strictObject({
  agent: z.string().min(1).max(64).describe("Name of the agent for the task, from list_agents."),
  task: z.string().trim().min(1).max(16_000).describe("A complete description of the work to do."),
  context: z
    .string()
    .max(200_000)
    .describe(
      "Information that the agent needs, because it does not see this conversation. It receives at most 16,000 characters.",
    ),
  task_id: z.string().max(64).optional().describe("Id of the task on the task board, if it has one."),
});
const Ids = z.array(z.string().min(1).max(128)).min(1).max(MAX_TASKS);
const OptionalIds = Ids.optional().describe(
  "Ids of background tasks. Default: all tasks whose outcome you have not seen.",
);

// These schemas are created only once, because the tools are defined for every run.
const Nothing = z.strictObject({});
const Tasks = z.strictObject({ tasks: z.array(TaskFields).min(1).max(MAX_TASKS) });
const Checked = z.strictObject({ ids: OptionalIds });
const Awaited = z.strictObject({ ids: OptionalIds, mode: z.enum(["any", "all"]).default("all") });
const Cancelled = z.strictObject({ id: z.string().min(1).max(128) });

/** These tools are idempotent because a repeated call finds its children. */
export const DELEGATES: ToolAnnotations = { idempotent: true, waits: true, requiresPermission: false };
const QUICK: ToolAnnotations = { idempotent: true, requiresPermission: false };

export const listAgents = (config: SubagentConfig): Tool =>
  defineTool({
    name: "list_agents",
    description: "Lists the agents that you can give tasks to.",
    parameters: Nothing,
    annotations: { readOnly: true, category: "plan", requiresPermission: false },
    execute: async () => available(config).map(lineOf).join("\n") || "There are none.",
  });

export const delegate = (config: SubagentConfig): Tool =>
  defineTool({
    name: "delegate",
    description: `Gives tasks to other agents, all at once, and waits until all of them have reported. Use it for \
work that you can describe completely, and for several pieces of work that do not depend on each other.`,
    parameters: Tasks,
    annotations: DELEGATES,
    execute: ({ tasks }, call, run) => delegateTasks(config, { call, tasks }, run),
  });

export const task = (config: SubagentConfig): Tool =>
  defineTool({
    name: "task",
    description:
      "Gives one task to another agent and waits for its report. To give several tasks at once, use delegate.",
    parameters: TaskFields,
    annotations: DELEGATES,
    execute: (task, call, run) => delegateTasks(config, { call, tasks: [task] }, run),
  });

export const startTask = (config: SubagentConfig): Tool =>
  defineTool({
    name: "start_task",
    description: `Gives a task to another agent and returns an id at once. The agent works in the background, even after \
you have answered. Use check_tasks to look at its state, and wait_tasks to wait for it.`,
    parameters: TaskFields,
    annotations: { ...DELEGATES, waits: false },
    execute: (task, call, run) => startInBackground(config, { call, task }, run),
  });

export const checkTasks = (config: SubagentConfig): Tool =>
  defineTool({
    name: "check_tasks",
    description: "Shows the state of background tasks without waiting for them.",
    parameters: Checked,
    annotations: QUICK,
    async *execute({ ids }, _, run) {
      const chosen = choose(ids, run);
      if ("fault" in chosen) return failed(chosen.fault);
      const texts: string[] = [];
      for (const child of chosen.children) texts.push(yield* stateOf(config, child, run));
      return texts.join("\n\n");
    },
  });

export const waitTasks = (config: SubagentConfig): Tool =>
  defineTool({
    name: "wait_tasks",
    description: "Waits until any or all of the background tasks have ended, and returns their reports.",
    parameters: Awaited,
    annotations: DELEGATES,
    execute: ({ ids, mode }, call, run) => waitFor(config, { call, ids, mode }, run),
  });

export const cancelTask = (config: SubagentConfig): Tool =>
  defineTool({
    name: "cancel_task",
    description: "Cancels a background task.",
    parameters: Cancelled,
    annotations: QUICK,
    async *execute({ id }, _, run) {
      const chosen = choose([id], run);
      if ("fault" in chosen) return failed(chosen.fault);
      const [child] = chosen.children;
      if (!child) return failed(NONE);
      const ended = yield* reportIfEnded(config, child, run);
      if (ended) return formatReport(child, ended);
      const newest = await config.subagents.newest(run.owner, id);
      if (newest) await config.subagents.stop(run.owner, newest, "cancel");
      yield* recordResult(config, { child: { ...child, told: true }, report: CANCELLED }, run);
      return formatReport(child, CANCELLED);
    },
  });

async function* delegateTasks(
  config: SubagentConfig,
  { call, tasks }: { call: ToolCall; tasks: readonly SubagentTask[] },
  run: Run,
): Stream<ToolResult> {
  const registered = yield* registerChildren(config, { call, tasks, background: false }, run);
  const works = registered.map((each, index) =>
    delegateOne(config, { call, each, id: pathId(call, index, tasks.length) }, run),
  );
  const results = yield* whilePaused(config, run, interleave(works, config.concurrency));
  if (results.some(({ status }) => status === "waiting")) return interrupted();
  const text = results.map(({ text }) => text).join("\n\n");
  return results.every(({ status }) => status === "refused") ? failed(text) : done(text);
}

/** Pauses the run while it waits for its children, so they can use its slot. */
async function* whilePaused<T>({ subagents }: SubagentConfig, run: Run, waiting: Stream<T>): Stream<T> {
  const resume = subagents.pause(run.id, run.signal);
  try {
    return yield* waiting;
  } finally {
    await resume();
  }
}

async function* delegateOne(
  config: SubagentConfig,
  { call, id, each }: { call: ToolCall; id: string; each: RegisteredTask },
  run: Run,
): Stream<{ status: ChildOutcome["status"] | "refused"; text: string }> {
  if ("fault" in each) return { status: "refused", text: `[not started] ${each.task.agent}: ${each.fault}` };
  const { child } = each;
  const start = () => startChild(config, { ...each, call }, run);
  const outcome = yield* awaitChild(config, { call, id, child, start }, run);
  return {
    status: outcome.status,
    text: outcome.status === "ended" ? formatReport(child, outcome.report) : "",
  };
}

/**
 * Returns the path element for a call's `index`-th child, which is added to the path of the child's events.
 */
const pathId = ({ id }: ToolCall, index: number, count: number) => (count === 1 ? id : `${id}#${index + 1}`);

async function* startInBackground(
  config: SubagentConfig,
  { call, task }: { call: ToolCall; task: SubagentTask },
  run: Run,
): Stream<ToolResult> {
  const [each] = yield* registerChildren(config, { call, tasks: [task], background: true }, run);
  if (!each || "fault" in each) return failed(each?.fault ?? "");
  const { child } = each;
  if (hasEnded(child)) return failed(child.summary ?? "");
  try {
    if (!child.run_id) {
      assertRoom(child, run);
      const record = await startChild(config, { ...each, call }, run);
      yield* saveChildren(run, [{ ...child, run_id: record.id }]);
    }
    return done(`[${child.name}] agent ${child.agent}: started, id ${child.thread_id}`);
  } catch (error) {
    run.signal.throwIfAborted();
    const report = { status: "failed", summary: failureText(error) } as const;
    yield* recordResult(config, { child: { ...child, told: true }, report }, run);
    return failed(report.summary);
  }
}

function assertRoom({ thread_id }: Child, run: Run): void {
  const running = childrenOf(run).filter(
    (other) => other.background && other.thread_id !== thread_id && !hasEnded(other),
  );
  if (running.length >= MAX_TASKS)
    throw new AppError(
      "limit_exceeded",
      `${MAX_TASKS} tasks are already in the background, which is the maximum. Wait for one of them, or cancel it.`,
    );
}

const NONE = "There are no background tasks whose outcome you have not seen.";

function choose(ids: readonly string[] | undefined, run: Run): { children: Child[] } | { fault: string } {
  const all = childrenOf(run).filter(({ background }) => background);
  const children = all.filter(({ thread_id, told }) => (ids ? ids.includes(thread_id) : !told));
  const missing = ids?.find((id) => !children.some(({ thread_id }) => thread_id === id));
  if (missing !== undefined) return { fault: `There is no task \`${missing}\` in the background.` };
  return children.length > 0 ? { children } : { fault: NONE };
}

const WAITING = "is waiting for the user's answer";
const lineAbout = ({ name, agent, thread_id }: Child, state: string) =>
  `[${name}] agent ${agent}: ${state}, id ${thread_id}`;

async function* stateOf(config: SubagentConfig, child: Child, run: Run): Stream<string> {
  const ended = yield* reportIfEnded(config, child, run);
  if (ended) return formatReport(child, ended);
  const newest = await config.subagents.newest(run.owner, child.thread_id);
  return lineAbout(child, newest?.status === "interrupted" ? WAITING : (newest?.status ?? "deleted"));
}

/** Records the ending of a child that has ended, and returns its report. */
async function* reportIfEnded(config: SubagentConfig, child: Child, run: Run): Stream<Report | undefined> {
  const { owner } = run;
  const newest = await config.subagents.newest(owner, child.thread_id);
  const isOver = !newest || (isSettled(newest.status) && newest.status !== "interrupted");
  if (!isOver && !hasEnded(child)) return undefined;
  const told: Child = { ...child, told: true };
  const thread = newest && (await config.subagents.thread(owner, child.thread_id));
  const report: Report = thread
    ? reportFor(newest, newest.id, thread)
    : { status: "failed", summary: "Its thread was deleted." };
  if (hasEnded(child)) yield* saveChildren(run, [told]);
  else yield* recordResult(config, { child: told, report, ...(thread ? { thread } : {}) }, run);
  return report;
}

interface Wait {
  readonly call: ToolCall;
  readonly ids: readonly string[] | undefined;
  readonly mode: "any" | "all";
}

async function* waitFor(config: SubagentConfig, { call, ids, mode }: Wait, run: Run): Stream<ToolResult> {
  const chosen = choose(ids, run);
  if ("fault" in chosen) return failed(chosen.fault);
  const { children } = chosen;
  const enough = new AbortController();
  const wait = async function* (child: Child, index: number): Stream<ChildOutcome> {
    const id = pathId(call, index, children.length);
    const outcome = yield* awaitChild(config, { call, id, child, until: enough.signal }, run);
    if (outcome.status === "ended" && mode === "any") enough.abort();
    return outcome;
  };
  const all = yield* whilePaused(config, run, interleave(children.map(wait), children.length));
  const ended = all.filter((each) => each.status === "ended");
  const isEnough = mode === "any" && ended.length > 0;
  if (!isEnough && all.some(({ status }) => status === "waiting")) return interrupted();
  yield* saveChildren(
    run,
    ended.map(({ child }) => ({ ...child, told: true })),
  );
  return done(all.map(textOf).join("\n\n"));
}

function textOf(outcome: ChildOutcome): string {
  const { child, status } = outcome;
  if (status === "ended") return formatReport(child, outcome.report);
  return lineAbout(child, status === "waiting" ? WAITING : "running");
}
