// Children of a call: found again when the call is repeated, else named and written down before they begin.

import { AppError } from "../../core/errors.ts";
import { newThreadId } from "../../core/ids.ts";
import type { ToolCall } from "../../core/message.ts";
import type { Lineage, RunRecord } from "../../core/records.ts";
import { rootOf } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import { claimTask, settleTask } from "../task-board.ts";
import { briefing, type Task } from "./briefing.ts";
import { type Child, callerOf, childrenOf, keepChildren } from "./children.ts";
import { instanceName } from "./names.ts";
import { cut } from "./outcome.ts";
import { memberCalled, type Team } from "./team.ts";

const MAX_TASK_CHARS = 500;

/** A task with the child that has it, or with why nobody gets it. */
export type Enlisted =
  | { readonly task: Task; readonly child: Child }
  | { readonly task: Task; readonly fault: string };

interface Enlisting {
  readonly call: ToolCall;
  readonly tasks: readonly Task[];
  readonly background: boolean;
}

export async function* enlist(
  team: Team,
  { call, tasks, background }: Enlisting,
  run: Run,
): Stream<Enlisted[]> {
  const message_id = callerOf(call, run);
  const all = childrenOf(run);
  const own = all.filter((child) => child.message_id === message_id && child.call_id === call.id);
  let number = all.at(-1)?.number ?? 0;
  const news: Child[] = [];
  const enlisted = tasks.map((task, index): Enlisted => {
    const known = own.find((child) => child.index === index);
    if (known) return { task, child: known };
    const found = memberCalled(task.agent, team);
    if ("fault" in found) return { task, fault: found.fault };
    const agent = found.member.name;
    const child: Child = {
      thread_id: newThreadId(),
      ...{ number: ++number, message_id, call_id: call.id, index, agent, background, status: "running" },
      name: instanceName({ agent, task: task.task, number, parent: run.lineage?.name }),
      task: cut(task.task, MAX_TASK_CHARS),
      ...(task.task_id === undefined ? {} : { task_id: task.task_id }),
    };
    news.push(child);
    return { task, child };
  });
  yield* keepChildren(run, news);
  return enlisted;
}

/** How a child begins: with its task on the board as its own. */
export function beginner(team: Team, { task, child }: { task: Task; child: Child }, run: Run) {
  return async (lineage: Lineage): Promise<RunRecord> => {
    const { task_id, agent, name, thread_id } = child;
    const { items, subagents } = team;
    const place = { owner: run.owner, root: rootOf(run) };
    const messages = await briefing(team, { ...task, agent }, run);
    const begin = () => subagents.begin(run.owner, { thread_id, agent, messages, lineage });
    if (task_id === undefined) return begin();
    if (!items) throw new AppError("invalid_request", "There is no task board.");
    await claimTask(items, place, task_id, name);
    try {
      return await begin();
    } catch (error) {
      await settleTask(items, place, { id: task_id, status: "failed", by: name });
      throw error;
    }
  };
}
