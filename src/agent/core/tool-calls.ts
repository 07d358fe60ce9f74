// Runs the tool calls of one message in parallel. Each call gets exactly one start, one end and, unless it must wait, one result,
// which is appended to the thread as soon as it is known.

import { linkedTo, untilAborted } from "../../lib/async.ts";
import { jsonCopy } from "../../lib/json.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import { failedEnd, innerSpans } from "../../protocol/open-spans.ts";
import { readSpans } from "../../protocol/span-reader.ts";
import { argumentsFault } from "./call-arguments.ts";
import { coerceCall } from "./coerce-arguments.ts";
import {
  AppError,
  type ErrorInfo,
  endsTheRun,
  isCancellation,
  isHandover,
  stoppedBecause,
} from "./errors.ts";
import { exhausted, failureText, isStoreFailure } from "./failures.ts";
import type { CallTool, ToolRequest } from "./hook.ts";
import { type ToolCall, textOf } from "./message.ts";
import { asEdited, settledInterrupts } from "./open-interrupts.ts";
import { appended, duringCall, type MutableRun, reportFailure, type StandIn } from "./run.ts";
import { leavable, leave, type Stream, tap, toStream } from "./stream.ts";
import { failed, resultMessage, type ToolResult } from "./tool.ts";

const MAX_PARALLEL_CALLS = 16;
/** The time that a tool has to return after an abort before it is abandoned, in ms. */
const GRACE_MS = 1000;

/**
 * The abort reason for calls that are still running when a batch ends. It is shared because creating an Error
 * per batch is expensive.
 */
const BATCH_ENDED = new AppError("lease_lost", "The batch is over.");

/** The error of spans that a call left open. */
const CALL_ENDED: ErrorInfo = { code: "cancelled", message: "The tool call ended first." };

export interface DispatchResult {
  /** The calls that wait for an answer. */
  readonly waiting: readonly ToolCall[];
  /** True if one of the results ends the run. */
  readonly endsRun: boolean;
}

interface DispatchContext {
  readonly run: MutableRun;
  readonly standIn: StandIn | undefined;
}

/**
 * Throws an error that ends the run only after every other call has its result. Passes on errors of
 * `standIn`.
 */
export async function* dispatch(
  calls: readonly ToolCall[],
  callTool: CallTool,
  { run, standIn }: DispatchContext,
): Stream<DispatchResult> {
  if (calls.length === 0) return { waiting: [], endsRun: false };
  const batch = linkedTo(run.signal);
  const { signal } = batch;
  const fatal: unknown[] = [];

  let endsRun = false;

  const settle = async function* (asked: ToolCall): Stream<ToolCall | undefined> {
    const tool = run.tools.get(asked.name);
    const call = coerceCall(asEdited(asked, run), tool);
    const started = performance.now();
    yield { event: "on_tool_start", name: call.name, data: { call_id: call.id, args: call.args } };
    run.started.add(call.id);
    const within = trackNestedSpans();
    let result: ToolResult;
    try {
      await tool?.prepare?.();
      result = yield* within.through(callTool({ call, tool, signal }));
    } catch (error) {
      if (endsTheRun(error)) {
        fatal.push(error);
        batch.abort(error);
      }
      const isOurs = isStoreFailure(error);
      const about = { error, tool: call.name, call_id: call.id };
      if (isOurs) reportFailure(run, { what: "tool", ...about });
      else if (exhausted(error) !== undefined) reportFailure(run, { what: "resource", ...about });
      const known = signal.aborted || isOurs ? await resultOfStopped(call, run, standIn) : undefined;
      result = known ?? failed(signal.aborted ? stoppedBecause(signal) : failureText(error));
    }
    for (const end of within.ends(CALL_ENDED)) yield end;
    run.started.delete(call.id);
    yield toolEnd(call, result, performance.now() - started);
    if (result.status === "interrupted") return asked;
    endsRun ||= result.endsRun ?? false;
    yield appended(run, resultMessage(call, result));
    for (const event of settledInterrupts(run, [call.id])) yield event;
    return undefined;
  };

  try {
    const waiting = yield* interleave(calls.map(settle), MAX_PARALLEL_CALLS);
    if (fatal.length > 0) throw fatal[0];
    return { waiting: waiting.filter((call) => call !== undefined), endsRun };
  } finally {
    batch.detach();
    batch.abort(BATCH_ENDED); // stops calls that still run when the consumer returns early
  }
}

/**
 * Returns the delivered result of a call. The result may have arrived before the call was stopped or the
 * store failed.
 */
async function resultOfStopped(
  call: ToolCall,
  { signal }: MutableRun,
  standIn: StandIn | undefined,
): Promise<ToolResult | undefined> {
  if (isHandover(signal)) return undefined;
  return standIn?.(call, { isGivenUp: isCancellation(signal) });
}

/**
 * The innermost layer: validates the arguments and runs the tool. `absence` explains why a tool is currently
 * unavailable.
 */
export async function* executeTool(
  { call, tool, signal }: ToolRequest,
  run: MutableRun,
  absence?: (tool: string) => string | undefined,
): Stream<ToolResult> {
  if (!tool) {
    const why = absence?.(call.name);
    if (why !== undefined) return failed(why);
    const choice = run.offeredTools.length > 0 ? ` Use one of: ${run.offeredTools.join(", ")}.` : "";
    return failed(`There is no tool \`${call.name}\`.${choice}`);
  }
  if (call.malformed !== undefined)
    return failed(`The arguments ${argumentsFault(call.malformed)}. Send them again as one JSON object.`);
  // A tool may modify its arguments, but the arguments of a call that waited are part of the thread and
  // frozen.
  const parsed = tool.parse(jsonCopy(call.args));
  if ("faults" in parsed) return failed(`Invalid arguments. ${parsed.faults.join(" ")}`);
  signal.throwIfAborted();
  const work = toStream(tool.execute(parsed.args, call, duringCall(run, signal)));
  return yield* untilAborted(work, signal, GRACE_MS);
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

interface NestedSpans {
  see(event: StreamEvent): void;
  /** Passes the events of `work` on and tracks the nested ones. */
  through<T>(work: Stream<T>): Stream<T>;
  /** Returns the end events of all open spans, innermost first. */
  ends(error: ErrorInfo): StreamEvent[];
}

/** Tracks the spans that subagents open within a tool call, to close each one before the call ends. */
export function trackNestedSpans(): NestedSpans {
  const spans = readSpans({});
  return {
    see: spans.see,
    through: (work) =>
      tap(work, (event) => {
        if (isNested(event)) spans.see(event);
      }),
    ends(error) {
      const ends = innerSpans(spans.open())
        .reverse()
        .map((span) => failedEnd(span, error));
      for (const end of ends) spans.see(end);
      return ends;
    },
  };
}

const isNested = ({ event, path }: StreamEvent) =>
  path !== undefined || event === "on_subagent_start" || event === "on_subagent_end";

interface Arrival<T, E> {
  readonly index: number;
  /** Undefined if the stream failed with `error`. */
  readonly item?: IteratorResult<E, T>;
  readonly error?: unknown;
}

/**
 * Runs streams in parallel, at most `limit` at a time. Yields their events as they arrive and returns their
 * results in the given order. A stream resumes only after its last event was consumed, so the consumer
 * finishes an event before the stream's next step. All streams end at the first failure, and when the
 * consumer stops reading. This function does not wait for the streams to end.
 */
export async function* interleave<T, E>(streams: readonly Stream<T, E>[], limit: number): Stream<T[], E> {
  const [only] = streams;
  if (only && streams.length === 1) return [yield* leavable(only)];
  const results = new Array<T>(streams.length);
  const arrived: Arrival<T, E>[] = [];
  let wake = () => {};
  let started = 0;

  const arrive = (arrival: Arrival<T, E>) => {
    arrived.push(arrival);
    wake();
  };
  const pull = (index: number, stream: Stream<T, E>) =>
    stream.next().then(
      (item) => arrive({ index, item }),
      (error: unknown) => arrive({ index, error }),
    );
  const startNext = () => {
    const stream = streams[started];
    if (stream) void pull(started++, stream);
  };

  try {
    for (let slot = 0; slot < limit; slot++) startNext();
    for (let live = streams.length; live > 0; ) {
      const next = arrived.shift();
      if (!next) {
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      const { index, item, error } = next;
      if (!item) throw error;
      if (item.done) {
        results[index] = item.value;
        live--;
        startNext();
      } else {
        yield item.value;
        const stream = streams[index];
        if (stream) void pull(index, stream);
      }
    }
    return results;
  } finally {
    for (const stream of streams) leave(stream);
  }
}
