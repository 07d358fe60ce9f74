// Waits for one child. It starts or finds the child's run, forwards its events, passes questions and answers between the child
// and the parent's user, and records the result. A repeated call continues where an earlier attempt stopped.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { StreamEvent } from "../../../protocol/event.ts";
import type { Interrupt } from "../../../protocol/interrupt.ts";
import { AppError, endsTheRun, hasCode, isHandover } from "../../core/errors.ts";
import { failureText } from "../../core/failures.ts";
import { addUsage, NO_USAGE, type ToolCall, type Usage, unanswered } from "../../core/message.ts";
import { forwardInterrupts, openInterrupts } from "../../core/open-interrupts.ts";
import { isSettled, type RunRecord } from "../../core/records.ts";
import { countUsage } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import { trackNestedSpans } from "../../core/tool-calls.ts";
import { type Child, hasEnded, lineageOf, saveChildren } from "./child.ts";
import {
  CANCELLED,
  type ChildEnding,
  type Report,
  recordResult,
  reportFor,
  STOPPED,
  storedReport,
} from "./result.ts";
import type { SubagentConfig } from "./subagent-config.ts";

/** The maximum number of times that one call resumes a child. It stops a child that keeps asking. */
const MAX_ROUNDS = 50;
/**
 * The time in ms that a cancelled child may take to end. It is slightly shorter than the time that the call
 * of the child's parent may take to end.
 */
const CANCEL_GRACE_MS = 900;
/** The interval for checking whether the parent was asked to stop after its step, in ms. */
const STOP_POLL_MS = 100;
/** The interval for checking whether a child that waits for a deferred result was resumed, in ms. */
const DEFERRED_POLL_MS = 1000;

interface AwaitOptions {
  readonly call: ToolCall;
  /** The element to add to the path of the child's events. */
  readonly id: string;
  readonly child: Child;
  /** Undefined for a child that has already started. */
  start?(): Promise<RunRecord>;
  /** Aborts when the call no longer needs the child, which then continues to run. */
  readonly until?: AbortSignal;
}

/**
 * `waiting`: the child waits for a person's answer. `left`: the child still runs, and the call no longer
 * waits for it.
 */
export type ChildOutcome =
  | { readonly status: "ended"; readonly child: Child; readonly report: Report }
  | { readonly status: "waiting" | "left"; readonly child: Child };

/** Waits for a child. Throws only errors that end the parent's run or hand it over to another process. */
export async function* awaitChild(
  config: SubagentConfig,
  options: AwaitOptions,
  run: Run,
): Stream<ChildOutcome> {
  let { child } = options;
  if (hasEnded(child)) return { status: "ended", child, report: await storedReport(config, child, run) };
  let open: RunRecord | undefined;
  try {
    let record = await currentRun(config, options, run);
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (child.status === "running" || child.run_id !== record.id) {
        child = { ...child, run_id: record.id, status: "running" };
        yield* saveChildren(run, [child]);
        yield startEvent(config, options, record, run);
        open = record;
        const followed = yield* follow(config, { ...options, child, record }, run);
        const ending = followed.ending ?? (await storedEnding(config, record, run));
        if (!ending) return yield* leave(options, child, run);
        const thread = await config.subagents.thread(run.owner, child.thread_id);
        if (!isWaiting(ending)) {
          const report = reportFor(ending, record.id, thread);
          child = yield* recordResult(config, { child, report, thread }, run);
          yield endEvent(options, report, followed.usage);
          return { status: "ended", child, report };
        }
        child = { ...child, status: "interrupted" };
        yield* saveChildren(run, [child]);
        yield endEvent(options, { status: "interrupted", summary: "" }, followed.usage);
        open = undefined;
      }
      const next = yield* resumeChild(config, { ...options, child, record }, run);
      if (typeof next === "string") return { status: next, child };
      record = next;
    }
    throw new AppError(
      "limit_exceeded",
      `The agent asked ${MAX_ROUNDS} times, which is the maximum, and received an answer each time.`,
    );
  } catch (error) {
    if (isHandover(run.signal) || endsTheRun(error)) throw error;
    // If one call fails to wait for a background child, the child continues to run.
    if (child.background && !hasCode(error, "not_found")) throw error;
    const report: Report = run.signal.aborted
      ? CANCELLED
      : { status: hasCode(error, "cancelled") ? "cancelled" : "failed", summary: failureText(error) };
    await stopNewest(config, child, run);
    child = yield* recordResult(config, { child, report }, run);
    if (open) yield endEvent(options, report);
    return { status: "ended", child, report };
  }
}

/** Returns the child's most recent run, or starts its first one. */
async function currentRun(
  { subagents }: SubagentConfig,
  { child, start }: AwaitOptions,
  run: Run,
): Promise<RunRecord> {
  const newest = await subagents.newest(run.owner, child.thread_id);
  if (newest) return newest;
  if (child.run_id || !start) throw new AppError("not_found", "Its thread was deleted.");
  run.signal.throwIfAborted();
  return start();
}

/** True if the child waits for an answer or for a deferred result. */
const isWaiting = ({ status, stop_reason }: ChildEnding) =>
  status === "interrupted" && stop_reason !== "interrupt";

/** Reads the ending of a run from the store when the run's last event could not be read. */
async function storedEnding(
  { subagents }: SubagentConfig,
  record: RunRecord,
  run: Run,
): Promise<ChildEnding | undefined> {
  const newest = await subagents.newest(run.owner, record.thread_id);
  return newest?.id === record.id && isSettled(newest.status) ? newest : undefined;
}

async function* leave(options: AwaitOptions, child: Child, run: Run): Stream<ChildOutcome> {
  if (!child.background || isHandover(run.signal)) {
    run.signal.throwIfAborted();
    throw new AppError("events_expired", "The agent's events are no longer available.");
  }
  yield endEvent(options, { status: "running", summary: "It continues in the background." });
  return { status: "left", child };
}

async function stopNewest({ subagents }: SubagentConfig, child: Child, run: Run): Promise<void> {
  try {
    const newest = await subagents.newest(run.owner, child.thread_id);
    if (newest) await subagents.stop(run.owner, newest, "cancel");
  } catch (error) {
    // If the store is unavailable, the child cannot write to it either.
    if (!(error instanceof AppError)) throw error;
  }
}

function startEvent(
  { subagents }: SubagentConfig,
  { call, id, child: { agent, name } }: AwaitOptions,
  { id: run_id, thread_id }: RunRecord,
  run: Run,
): StreamEvent {
  const parent = run.lineage?.name ?? run.agent;
  const prefix = subagents.describe([agent])[0]?.prefix;
  return {
    event: "on_subagent_start",
    data: { id, call_id: call.id, agent, name, ...omitUndefined({ prefix }), parent, thread_id, run_id },
  };
}

function endEvent(
  { call, id, child }: AwaitOptions,
  { status, summary }: { status: Report["status"] | "interrupted" | "running"; summary: string },
  usage?: Usage,
): StreamEvent {
  const data = { id, call_id: call.id, status, summary };
  return { event: "on_subagent_end", data: usage && !child.background ? { ...data, usage } : data };
}

interface RunOfChild extends AwaitOptions {
  readonly record: RunRecord;
}

/**
 * Forwards a run's events under the child's path, and adds the usage of a foreground child to the parent's.
 * If the call ends first, it cancels a foreground child but leaves a background child running. `ending` is
 * undefined if the child was left running.
 */
async function* follow(
  { subagents }: SubagentConfig,
  options: RunOfChild,
  run: Run,
): Stream<{ ending: ChildEnding | undefined; usage: Usage }> {
  const { record, id, child } = options;
  const watch = watchForStop(subagents, options, run);
  const spans = trackNestedSpans();
  /**
   * The model calls of the child's own subagents that were already counted. When a resumed child follows its
   * subagents again, it starts from their first events.
   */
  const counted = new Set<string>();
  let ending: ChildEnding | undefined;
  let usage = NO_USAGE;
  try {
    for await (const event of subagents.events(run.owner, record, watch.signal)) {
      ending = endingIn(event);
      if (ending) break;
      if (event.event === "run_start" && !event.path) continue;
      if (event.event === "on_chat_model_end" && event.data.usage && !counted.has(event.data.message_id)) {
        if (event.path) counted.add(event.data.message_id);
        usage = addUsage(usage, event.data.usage);
        if (!child.background) countUsage(run, event.data.usage);
      }
      const forwarded = { ...event, path: [id, ...(event.path ?? [])] };
      spans.see(forwarded);
      yield forwarded;
    }
  } finally {
    watch.end();
  }
  yield* spans.ends({ code: "cancelled", message: "The subagent is no longer followed." });
  return { usage, ending };
}

function endingIn({ event, path, data }: StreamEvent): ChildEnding | undefined {
  if (path) return undefined;
  if (event === "done") return { status: data.status, stop_reason: data.stop_reason };
  return event === "error" ? { status: "error", error: data } : undefined;
}

/**
 * Stops the child when the parent is stopped. `signal` aborts when the caller should no longer follow the
 * child. Call `end` afterwards.
 */
function watchForStop(
  subagents: SubagentConfig["subagents"],
  { record, child: { background }, until }: RunOfChild,
  run: Run,
) {
  const leave = new AbortController();
  // A failed request is not retried. Without the request, the child ends when its work is done or when it
  // next checks whether to stop.
  const stop = (mode: "cancel" | "interrupt") => void subagents.stop(run.owner, record, mode).catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    if (background || isHandover(run.signal)) return leave.abort();
    stop("cancel");
    timer = setTimeout(() => leave.abort(), CANCEL_GRACE_MS);
  };
  const onEnough = () => leave.abort();
  const poll = setInterval(() => {
    if (!run.interruptRequested()) return;
    clearInterval(poll);
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
      clearInterval(poll);
      clearTimeout(timer);
      run.signal.removeEventListener("abort", onAbort);
      until?.removeEventListener("abort", onEnough);
    },
  };
}

/**
 * Returns the run that continues an interrupted child, `waiting` if a person has not answered yet, or `left`
 * if the call no longer waits.
 */
async function* resumeChild(
  config: SubagentConfig,
  options: RunOfChild,
  run: Run,
): Stream<RunRecord | "waiting" | "left"> {
  const { subagents } = config;
  const { call, child, record, until } = options;
  const { agent, name, thread_id } = child;
  run.signal.throwIfAborted();
  if (until?.aborted) return "left";
  const { messages, state } = await subagents.thread(run.owner, thread_id);
  const pending = new Set(unanswered(messages).map(({ id }) => id));
  const questions = openInterrupts(new Map(Object.entries(state))).filter(({ call_id }) =>
    pending.has(call_id),
  );
  if (questions.length === 0) return deferredRun(config, options, run);
  const answers = yield* forwardInterrupts({ call, agent, name, thread_id }, questions, run);
  if (answers.length === 0 && !questions.some(isOverdue)) return "waiting";
  // Identical answers resume the child only once.
  const hash = createHash("sha256").update(JSON.stringify([record.id, answers]));
  const lineage = lineageOf(config, child, call, run);
  try {
    return await subagents.resume(run.owner, { run: record, lineage }, { answers, key: hash.digest("hex") });
  } catch (error) {
    // Another answer may have arrived first.
    const newest = await subagents.newest(run.owner, thread_id);
    if (newest && newest.id !== record.id) return newest;
    throw error;
  }
}

const isOverdue = ({ expires_at }: Interrupt) =>
  expires_at !== undefined && Date.parse(expires_at) <= Date.now();

/** Waits for the run that starts when the child's deferred result is delivered. */
async function deferredRun(
  { subagents }: SubagentConfig,
  { until, child, record }: RunOfChild,
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
