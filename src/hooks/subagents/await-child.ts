// One child from its beginning to its end, as the call waits for it that began it, or that asks for it. Whatever was done
// before, by an earlier attempt or an earlier run, is found and gone on with.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError, endsTheRun, hasCode, messageOf } from "../../core/errors.ts";
import type { StreamEvent } from "../../core/event.ts";
import type { Answer, Interrupt } from "../../core/interrupt.ts";
import { openInterrupts, passOn } from "../../core/interrupts.ts";
import { addUsage, NO_USAGE, type ToolCall, type Usage } from "../../core/message.ts";
import { unanswered } from "../../core/messages.ts";
import { nested } from "../../core/nested.ts";
import { isSettled, type Lineage, type RunRecord } from "../../core/records.ts";
import type { Stream } from "../../core/stream.ts";
import type { Subagents } from "../../core/subagents.ts";
import type { Run } from "../../core/tool.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { type Child, hasEnded, keepChildren, lineageOf } from "./child.ts";
import {
  CANCELLED,
  type ChildThread,
  type Ending,
  type Report,
  remembered,
  reportOn,
  STOPPED,
  settle,
} from "./result.ts";
import type { Team } from "./subagent-config.ts";

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
    data: { id, call_id: call.id, agent, name, ...omitUndefined({ prefix }), parent, thread_id, run_id },
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

// A child's run as its parent's stream tells it: what it says, under its path, between a start and an end of its own.
/** How long a child may take to end that was told to, in ms: a little less than its parent's call. */
const LAST_WORDS_MS = 900;
/** How often it is looked whether the parent was asked to stop after its step, in ms. */
const STOP_POLL_MS = 100;

interface Followed {
  readonly subagents: Subagents;
  readonly record: RunRecord;
  /** What stands in the path of its events. */
  readonly id: string;
  readonly background: boolean;
  /** Aborted when nobody waits for it any more. */
  readonly until?: AbortSignal | undefined;
}

export interface Heard {
  /** Absent when it was left before its end. */
  readonly ending?: Ending;
  readonly usage: Usage;
}

/**
 * Passes a run on from its first event to its last. When the call ends before it, a child in the foreground is cancelled,
 * one in the background left; when the parent is asked to stop after its step, the child is too.
 */
export async function* follow(followed: Followed, run: Run): Stream<Heard> {
  const { subagents, record, id } = followed;
  const leave = stopping(followed, run);
  const within = nested();
  let ending: Ending | undefined;
  let usage = NO_USAGE;
  try {
    for await (const event of subagents.events(run.owner, record, leave.signal)) {
      ending = endingIn(event);
      if (ending) break;
      if (event.event === "run_start" && !event.path) continue;
      if (event.event === "on_chat_model_end" && event.data.usage) usage = addUsage(usage, event.data.usage);
      const told = { ...event, path: [id, ...(event.path ?? [])] };
      within.see(told);
      yield told;
    }
  } finally {
    leave.end();
  }
  yield* within.ends({ code: "cancelled", message: "It was followed no further." });
  return { usage, ...(ending ? { ending } : {}) };
}

function endingIn({ event, path, data }: StreamEvent): Ending | undefined {
  if (path) return undefined;
  if (event === "done") return { status: data.status, stop_reason: data.stop_reason };
  return event === "error" ? { status: "error", error: data } : undefined;
}

/** The signal aborts when there is nothing to wait for any more. To be ended. */
function stopping({ subagents, record, background, until }: Followed, run: Run) {
  const leave = new AbortController();
  const stop = (mode: "cancel" | "interrupt") =>
    // One that cannot be told ends by itself, or when it is looked for.
    void subagents.stop(run.owner, record, mode).catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    if (background || goesOnElsewhere(run.signal)) return leave.abort();
    stop("cancel");
    timer = setTimeout(() => leave.abort(), LAST_WORDS_MS);
  };
  const onEnough = () => leave.abort();
  const looking = setInterval(() => {
    if (!run.interruptRequested()) return;
    clearInterval(looking);
    if (background) leave.abort();
    else stop("interrupt");
  }, STOP_POLL_MS);
  run.signal.addEventListener("abort", onAbort);
  until?.addEventListener("abort", onEnough);
  if (run.signal.aborted) onAbort();
  if (until?.aborted) onEnough();
  return {
    signal: leave.signal,
    end() {
      clearInterval(looking);
      clearTimeout(timer);
      run.signal.removeEventListener("abort", onAbort);
      until?.removeEventListener("abort", onEnough);
    },
  };
}

// A child that waits: for an answer, which its parent asks for in its place, or for a result from outside.
/** How often it is looked whether a child goes on that waits for a result from outside, in ms. */
const DEFERRED_POLL_MS = 1000;

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
    await sleep(DEFERRED_POLL_MS, undefined, { signal: run.signal, ref: false });
  }
}

// Why a run ends here: for good, or because another process goes on with it.

/** What such a run has begun is left as it is: whoever goes on with the run goes on with that. */
export function goesOnElsewhere({ reason }: AbortSignal): boolean {
  return hasCode(reason, "lease_lost") || hasCode(reason, "shutting_down");
}
