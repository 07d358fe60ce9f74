// What has become of a child, written down wherever that is of interest, and read back.

import { AppError, hasCode } from "../../core/errors.ts";
import { rootOf } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import { recordFailure } from "../reflections.ts";
import { settleTask } from "../task-board.ts";
import { type Child, keepChildren } from "./children.ts";
import { CANCELLED, cut, type Report, reportOn } from "./outcome.ts";
import type { Team } from "./team.ts";

const MAX_SUMMARY_CHARS = 500;

/** Returns the child as it is written down. */
export async function* settle(
  team: Team,
  { child, report }: { child: Child; report: Report },
  run: Run,
): Stream<Child> {
  const { owner } = run;
  const { status, summary } = report;
  // One that never began was not at it.
  const items = child.run_id === undefined ? undefined : team.items;
  const becomes = status === "cancelled" ? "canceled" : status;
  if (items && child.task_id !== undefined)
    await settleTask(
      items,
      { owner, root: rootOf(run) },
      { id: child.task_id, status: becomes, by: child.name },
    ).catch(ignoreRefusal);
  if (items && status === "failed" && team.agent.hooks.reflections)
    await recordFailure(items, { owner, agent: child.agent }, { task: child.task, summary }).catch(
      ignoreRefusal,
    );
  const settled = { ...child, status, summary: cut(summary, MAX_SUMMARY_CHARS) };
  yield* keepChildren(run, [settled]);
  return settled;
}

/** What can be written down nowhere does not change what was done. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof AppError) || hasCode(error, "lease_lost")) throw error;
}

/** Of a child whose end was written down before. */
export async function remembered({ subagents }: Team, child: Child, run: Run): Promise<Report> {
  const { status, summary = "", run_id = "" } = child;
  const known: Report =
    status === "completed" || status === "failed" ? { status, summary } : { ...CANCELLED, summary };
  const thread = await subagents.thread(run.owner, child.thread_id);
  if (thread.messages.length === 0) return known;
  const told = reportOn({ status: "success" }, run_id, thread);
  return told.status === status ? told : known;
}
