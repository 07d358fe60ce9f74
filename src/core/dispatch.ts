// Carrying out the tool calls of one message: side by side, each with exactly one start, one end and, unless
// it must wait, one result in the thread the moment it is known.

import { untilAborted } from "../lib/async.ts";
import { AppError, type ErrorInfo, endsTheRun, messageOf } from "./errors.ts";
import type { StreamEvent } from "./event.ts";
import type { CallTool, ToolRequest } from "./hook.ts";
import { interleave } from "./interleave.ts";
import { asEdited, settleInterrupts } from "./interrupts.ts";
import { type ToolCall, textOf, toolMessage } from "./message.ts";
import { nested } from "./nested.ts";
import { append, duringCall, type LiveRun } from "./run.ts";
import { type Stream, toStream } from "./stream.ts";
import { done, failed, type ToolResult } from "./tool.ts";

const MAX_PARALLEL_CALLS = 16;
/** How long a tool may take to give its own answer after an abort. Then it is given up. */
const GRACE_MS = 1000;

/** Made once: every batch ends with it. Whoever still works in it then works for nobody. */
const OVER = new AppError("lease_lost", "The batch is over.");

/** What becomes of whatever a call has left open. */
const LEFT: ErrorInfo = { code: "cancelled", message: "The call ended before it." };

export interface Dispatched {
  /** The calls that must wait. */
  readonly waiting: readonly ToolCall[];
  /** Whether one of the results is the run's last word. */
  readonly endsRun: boolean;
}

/** Throws what ends the run, after every other call has its result. */
export async function* dispatch(
  calls: readonly ToolCall[],
  callTool: CallTool,
  run: LiveRun,
): Stream<Dispatched> {
  if (calls.length === 0) return { waiting: [], endsRun: false };
  const batch = new AbortController();
  const signal = AbortSignal.any([run.signal, batch.signal]);
  const fatal: unknown[] = [];

  let endsRun = false;

  const settle = async function* (asked: ToolCall): Stream<ToolCall | undefined> {
    const call = asEdited(asked, run);
    const started = performance.now();
    yield { event: "on_tool_start", name: call.name, data: { call_id: call.id, args: call.args } };
    const within = nested();
    let result: ToolResult;
    try {
      result = yield* within.through(callTool({ call, tool: run.tools.get(call.name), signal }));
    } catch (error) {
      if (endsTheRun(error)) {
        fatal.push(error);
        batch.abort(error);
      }
      result = failed(signal.aborted ? reasonOf(signal) : messageOf(error));
    }
    yield* within.ends(LEFT);
    yield toolEnd(call, result, performance.now() - started);
    if (result.status === "interrupted") return asked;
    endsRun ||= result.endsRun ?? false;
    yield* append(run, toolMessage(call, result.output, result.error));
    yield* settleInterrupts(run, [call.id]);
    return undefined;
  };

  try {
    const waiting = yield* interleave(calls.map(settle), MAX_PARALLEL_CALLS);
    if (fatal.length > 0) throw fatal[0];
    return { waiting: waiting.filter((call) => call !== undefined), endsRun };
  } finally {
    batch.abort(OVER); // for a consumer that left in the middle: what still runs ends now
  }
}

/** The innermost layer: checks the arguments and runs the tool itself. */
export async function* executeTool({ call, tool, signal }: ToolRequest, run: LiveRun): Stream<ToolResult> {
  if (!tool) {
    const choice = run.offered.length > 0 ? ` Use one of: ${run.offered.join(", ")}.` : "";
    return failed(`There is no tool \`${call.name}\`.${choice}`);
  }
  if (call.malformed !== undefined) return failed("The arguments are not a JSON object. Send them again.");
  const parsed = tool.parse(call.args);
  if ("faults" in parsed) return failed(`Invalid arguments. ${parsed.faults.join(" ")}`);
  signal.throwIfAborted();
  const work = toStream(tool.execute(parsed.args, call, duringCall(run, signal)));
  const result = yield* untilAborted(work, signal, GRACE_MS);
  return typeof result === "string" ? done(result) : result;
}

function toolEnd(call: ToolCall, result: ToolResult, duration: number): StreamEvent {
  const data = { call_id: call.id, duration_ms: Math.round(duration * 10) / 10 };
  if (result.status === "interrupted")
    return { event: "on_tool_end", name: call.name, data: { ...data, interrupted: true } };
  const { output, error } = result;
  return {
    event: "on_tool_end",
    name: call.name,
    data: { ...data, output: textOf(output), ...(error === undefined ? {} : { error }) },
  };
}

const reasonOf = (signal: AbortSignal) =>
  signal.reason instanceof AppError ? signal.reason.message : "Cancelled before it finished.";
