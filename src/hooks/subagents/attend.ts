// One child from its beginning to its end, as the call waits for it that began it, or that asks for it. Whatever was done
// before, by an earlier attempt or an earlier run, is found and gone on with.

import { AppError, endsTheRun, hasCode, messageOf } from "../../core/errors.ts";
import type { StreamEvent } from "../../core/event.ts";
import type { ToolCall, Usage } from "../../core/message.ts";
import { isSettled, type Lineage, type RunRecord } from "../../core/records.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import { given } from "../../lib/given.ts";
import { type Child, hasEnded, keepChildren } from "./children.ts";
import { follow } from "./follow.ts";
import { goOn } from "./going-on.ts";
import { goesOnElsewhere } from "./leaving.ts";
import { lineageOf } from "./lineage.ts";
import { CANCELLED, type Ending, type Report, reportOn } from "./outcome.ts";
import { remembered, settle } from "./settle.ts";
import type { Team } from "./team.ts";

/** How often a child is answered for one call: who asks again and again, and is denied, ends some time. */
const MAX_ROUNDS = 50;

interface Attended {
  readonly call: ToolCall;
  /** What stands in the path of the child's events. */
  readonly id: string;
  readonly child: Child;
  /** What it is told when it begins; absent for one that has begun. */
  begin?(lineage: Lineage): Promise<RunRecord>;
  /** Aborted when nobody waits for it any more: then it is left. */
  readonly until?: AbortSignal;
}

/** `waiting`: for somebody's answer. `left`: it goes on, and nobody waits for it. */
export type Attendance =
  | { readonly status: "ended"; readonly child: Child; readonly report: Report }
  | { readonly status: "waiting" | "left"; readonly child: Child };

/** Throws only what ends the parent's run, or what makes it go on elsewhere. */
export async function* attend(team: Team, attended: Attended, run: Run): Stream<Attendance> {
  let { child } = attended;
  if (hasEnded(child)) return { status: "ended", child, report: await remembered(team, child, run) };
  let open: RunRecord | undefined;
  try {
    let record = await beginning(team, attended, run);
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (child.status === "running" || child.run_id !== record.id) {
        child = { ...child, run_id: record.id, status: "running" };
        yield* keepChildren(run, [child]);
        yield started(team, attended, record, run);
        open = record;
        const heard = yield* follow({ ...attended, ...team, record, background: child.background }, run);
        const ending = heard.ending ?? (await endingOf(team, record, run));
        if (!ending) return yield* leave(attended, child, run);
        const thread = await team.subagents.thread(run.owner, child.thread_id);
        if (!waits(ending)) {
          const report = reportOn(ending, record.id, thread);
          child = yield* settle(team, { child, report }, run);
          yield ended(attended, report, heard.usage);
          return { status: "ended", child, report };
        }
        child = { ...child, status: "interrupted" };
        yield* keepChildren(run, [child]);
        yield ended(attended, { status: "interrupted", summary: "" }, heard.usage);
        open = undefined;
      }
      const next = yield* goOn(team, { ...attended, child, record }, run);
      if (typeof next === "string") return { status: next, child };
      record = next;
    }
    throw new AppError("limit_exceeded", `It asked ${MAX_ROUNDS} times, and was answered each time.`);
  } catch (error) {
    if (goesOnElsewhere(run.signal) || endsTheRun(error)) throw error;
    // What is in the background does not end because somebody could not wait for it.
    if (child.background && !hasCode(error, "not_found")) throw error;
    const report = run.signal.aborted ? CANCELLED : broken(error);
    await stopNewest(team, child, run);
    child = yield* settle(team, { child, report }, run);
    if (open) yield ended(attended, report);
    return { status: "ended", child, report };
  }
}

/** Its newest run; it begins only if it has none. */
async function beginning(team: Team, { child, begin, call }: Attended, run: Run): Promise<RunRecord> {
  const there = await team.subagents.newest(run.owner, child.thread_id);
  if (there) return there;
  if (child.run_id || !begin) throw new AppError("not_found", "Its thread was deleted.");
  run.signal.throwIfAborted();
  return begin(lineageOf(team, child, call, run));
}

const broken = (error: unknown): Report => ({
  status: hasCode(error, "cancelled") ? "cancelled" : "failed",
  summary: messageOf(error),
});

/** A run that waits for an answer, or for a result from outside. */
const waits = ({ status, stop_reason }: Ending) => status === "interrupted" && stop_reason !== "interrupt";

/** How a run has ended whose end could not be read. */
async function endingOf({ subagents }: Team, record: RunRecord, run: Run): Promise<Ending | undefined> {
  const newest = await subagents.newest(run.owner, record.thread_id);
  return newest?.id === record.id && isSettled(newest.status) ? newest : undefined;
}

/** One that goes on in the background, or that was told to end and has not yet. */
async function* leave(attended: Attended, child: Child, run: Run): Stream<Attendance> {
  if (!child.background || goesOnElsewhere(run.signal)) {
    run.signal.throwIfAborted();
    throw new AppError("events_expired", "What it says can no longer be read.");
  }
  yield ended(attended, { status: "running", summary: "It goes on in the background." });
  return { status: "left", child };
}

async function stopNewest({ subagents }: Team, child: Child, run: Run): Promise<void> {
  try {
    const newest = await subagents.newest(run.owner, child.thread_id);
    if (newest) await subagents.stop(run.owner, newest, "cancel");
  } catch (error) {
    // The store is away: then so is what it could have done.
    if (!(error instanceof AppError)) throw error;
  }
}

function started(
  { subagents }: Team,
  { call, id, child }: Attended,
  { id: run_id, thread_id }: RunRecord,
  run: Run,
): StreamEvent {
  const parent = run.lineage?.name ?? run.agent;
  const { agent, name } = child;
  const prefix = subagents.describe([agent])[0]?.prefix;
  return {
    event: "on_subagent_start",
    data: { id, call_id: call.id, agent, name, ...given({ prefix }), parent, thread_id, run_id },
  };
}

function ended(
  { call, id, child }: Attended,
  { status, summary }: { status: Report["status"] | "interrupted" | "running"; summary: string },
  usage?: Usage,
): StreamEvent {
  const data = { id, call_id: call.id, status, summary };
  return { event: "on_subagent_end", data: { ...data, ...(usage && !child.background ? { usage } : {}) } };
}
