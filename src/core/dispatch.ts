// Carrying out the tool calls of one message: side by side, each with exactly one start, one end and, unless
// it must wait, one result in the thread the moment it is known.

import { AppError, endsTheRun, messageOf } from "./errors.ts";
import type { StreamEvent } from "./event.ts";
import type { CallTool, ToolRequest } from "./hook.ts";
import { interleave } from "./interleave.ts";
import { settleInterrupts } from "./interrupts.ts";
import { type ToolCall, textOf, toolMessage } from "./message.ts";
import { append, type Run } from "./run.ts";
import { type Stream, toStream } from "./stream.ts";
import { failed, type ToolResult } from "./tool.ts";

const MAX_PARALLEL_CALLS = 16;
/** How long a tool may take to give its own answer after an abort. Then it is given up. */
const GRACE_MS = 1000;

/** Made once: every batch ends with it. */
const OVER = new AppError("cancelled", "The batch is over.");

/** Returns the calls that must wait. Throws what ends the run, after every other call has its result. */
export async function* dispatch(
  calls: readonly ToolCall[],
  callTool: CallTool,
  run: Run,
): Stream<ToolCall[]> {
  const batch = new AbortController();
  const signal = AbortSignal.any([run.signal, batch.signal]);
  const fatal: unknown[] = [];

  const settle = async function* (call: ToolCall): Stream<ToolCall | undefined> {
    const started = performance.now();
    yield { event: "on_tool_start", name: call.name, data: { call_id: call.id, args: call.args } };
    let result: ToolResult;
    try {
      result = yield* callTool({ call, tool: run.tools.get(call.name), signal });
    } catch (error) {
      if (endsTheRun(error)) {
        fatal.push(error);
        batch.abort(error);
      }
      result = failed(signal.aborted ? reasonOf(signal) : messageOf(error));
    }
    yield toolEnd(call, result, performance.now() - started);
    if (result.status === "interrupted") return call;
    yield* append(run, toolMessage(call, result.output, result.error));
    yield* settleInterrupts(run, [call.id]);
    return undefined;
  };

  try {
    const waiting = yield* interleave(calls.map(settle), MAX_PARALLEL_CALLS);
    if (fatal.length > 0) throw fatal[0];
    return waiting.filter((call) => call !== undefined);
  } finally {
    batch.abort(OVER); // for a consumer that left in the middle: what still runs ends now
  }
}

/** The innermost layer: checks the arguments and runs the tool itself. */
export async function* executeTool({ call, tool, signal }: ToolRequest, run: Run): Stream<ToolResult> {
  if (!tool)
    return failed(
      `There is no tool \`${call.name}\`. Use one of: ${[...run.tools.keys()].sort().join(", ")}.`,
    );
  if (call.malformed !== undefined) return failed("The arguments are not a JSON object. Send them again.");
  const parsed = tool.parse(call.args);
  if ("faults" in parsed) return failed(`Invalid arguments. ${parsed.faults.join(" ")}`);
  signal.throwIfAborted();
  return yield* abandonable(toStream(tool.execute(parsed.args, call, { ...run, signal })), signal);
}

/** Passes `work` on until `signal` aborts; then waits a moment for it and leaves it behind. */
async function* abandonable<T>(work: Stream<T>, signal: AbortSignal): Stream<T> {
  let giveUp = () => {};
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => giveUp(), GRACE_MS);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      const item = await new Promise<IteratorResult<StreamEvent, T>>((resolve, reject) => {
        giveUp = () => reject(signal.reason);
        work.next().then(resolve, reject);
      });
      if (item.done) return item.value;
      yield item.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    clearTimeout(timer);
    work.return(undefined as never).catch(() => {});
  }
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
