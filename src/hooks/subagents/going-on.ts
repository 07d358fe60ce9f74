// A child that waits: for an answer, which its parent asks for in its place, or for a result from outside.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError } from "../../core/errors.ts";
import type { Answer, Interrupt } from "../../core/interrupt.ts";
import { openInterrupts, passOn } from "../../core/interrupts.ts";
import type { ToolCall } from "../../core/message.ts";
import { unanswered } from "../../core/messages.ts";
import type { RunRecord } from "../../core/records.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import type { Child } from "./children.ts";
import { lineageOf } from "./lineage.ts";
import { type ChildThread, STOPPED } from "./outcome.ts";
import type { Team } from "./team.ts";

/** How often it is looked whether a child goes on that waits for a result from outside, in ms. */
const LOOK_MS = 1000;

export interface Waiting {
  readonly call: ToolCall;
  readonly child: Child;
  readonly record: RunRecord;
  /** Aborted when nobody waits for it any more. */
  readonly until?: AbortSignal | undefined;
}

/** The run with which a child goes on that waits; or that it waits on, or that nobody waits for it any more. */
export async function* goOn(
  team: Team,
  { call, child, record, until }: Waiting,
  run: Run,
): Stream<RunRecord | "waiting" | "left"> {
  run.signal.throwIfAborted();
  if (until?.aborted) return "left";
  const thread = await team.subagents.thread(run.owner, child.thread_id);
  const asked = openOn(thread);
  if (asked.length === 0) return nextRun(team, { call, child, record, until }, run);
  const { agent, name, thread_id } = child;
  const answers = yield* passOn({ call, agent, name, thread_id }, asked, run);
  if (answers.length === 0 && !asked.some(isOverdue)) return "waiting";
  const lineage = lineageOf(team, child, call, run);
  const key = keyOf(record, answers);
  try {
    return await team.subagents.resume(run.owner, { run: record, lineage }, { answers, key });
  } catch (error) {
    // Somebody else may have answered, and it goes on already.
    const newest = await team.subagents.newest(run.owner, child.thread_id);
    if (newest && newest.id !== record.id) return newest;
    throw error;
  }
}

function openOn({ messages, state }: ChildThread): Interrupt[] {
  const calls = unanswered(messages).map(({ id }) => id);
  return openInterrupts(new Map(Object.entries(state))).filter(({ call_id }) => calls.includes(call_id));
}

const isOverdue = ({ expires_at }: Interrupt) =>
  expires_at !== undefined && Date.parse(expires_at) <= Date.now();

/** The same answers are given once. */
const keyOf = ({ id }: RunRecord, answers: readonly Answer[]) =>
  createHash("sha256")
    .update(JSON.stringify([id, answers]))
    .digest("hex");

/** The run after `record`, which begins when a result has come from outside. */
async function nextRun(
  { subagents }: Team,
  { until, child, record }: Waiting,
  run: Run,
): Promise<RunRecord | "left"> {
  for (;;) {
    const { messages } = await subagents.thread(run.owner, record.thread_id);
    const newest = await subagents.newest(run.owner, record.thread_id);
    if (!newest) throw new AppError("not_found", "Its thread was deleted.");
    if (newest.id !== record.id) return newest;
    if (unanswered(messages).length === 0) throw new AppError("not_found", "Its thread was cleared.");
    run.signal.throwIfAborted();
    if (until?.aborted || (child.background && run.interruptRequested())) return "left";
    if (run.interruptRequested()) throw new AppError("cancelled", STOPPED);
    await sleep(LOOK_MS, undefined, { signal: run.signal, ref: false });
  }
}
