// Giving tasks to other agents and waiting for what they report.

import { z } from "zod";
import { interleave } from "../../core/interleave.ts";
import type { ToolCall } from "../../core/message.ts";
import type { Stream } from "../../core/stream.ts";
import {
  defineTool,
  failed,
  interrupted,
  type Run,
  type Tool,
  type ToolAnnotations,
  type ToolResult,
} from "../../core/tool.ts";
import { type Attendance, attend } from "./attend.ts";
import type { Task } from "./briefing.ts";
import { beginner, type Enlisted, enlist } from "./enlist.ts";
import { tell } from "./outcome.ts";
import type { Team } from "./team.ts";

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
