// The result of a run.

import { AppError, type ErrorInfo } from "../../agent/core/errors.ts";
import type { AssistantMessage, Message, Usage } from "../../agent/core/message.ts";
import type { RunRecord, RunStatus } from "../../agent/core/records.ts";
import { storedEvent } from "../../agent/core/stored-json.ts";
import type { LogEntry, Stores } from "../../agent/core/stores.ts";
import { getRun, keyOf } from "../../engine/runs/control.ts";
import { openOn } from "../../engine/runs/start.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";

export interface RunResult<Output = unknown> {
  readonly run: RunRecord;
  /**
   * A run that reached a limit has the status `error` and the limit as `stop_reason`. Any other failed run has the
   * status `error` too.
   */
  readonly status: Exclude<RunStatus, "pending" | "running">;
  readonly stop_reason?: string;
  /** The last assistant message of this run. */
  readonly message?: AssistantMessage;
  /** The text of `message`, or an empty string. */
  readonly text: string;
  /** The answer of a successful run with an `output_schema`. */
  readonly output?: Output;
  /** All messages that the run added to the thread, including its input. */
  readonly messages: readonly Message[];
  readonly usage: Usage;
  /** `cause` is the thrown value, if the run failed recently in this process. */
  readonly error?: ErrorInfo & { readonly cause?: unknown };
  /** The open interrupts of an `interrupted` run. */
  readonly interrupts: readonly Interrupt[];
}

export interface ResultServices {
  readonly stores: Stores;
  /** Thrown values by run id. */
  readonly causes: { get(runId: string): unknown };
  /** Converts a run's output with its agent's schema. */
  readOutput(agent: string, value: unknown): unknown;
}

/** Resolves when the run ends. Throws `shutting_down` if `signal` aborts first, because the run may continue elsewhere. */
export async function resultOf(
  { stores, causes, readOutput }: ResultServices,
  { owner, run }: { owner: Owner; run: RunRecord },
  signal: AbortSignal,
): Promise<RunResult> {
  const messages: Message[] = [];
  const key = keyOf(owner, run);
  let output: unknown;
  for await (const batch of stores.events.read(key, 0, signal)) {
    for (const entry of batch) {
      if (entry.event === "on_message") messages.push(...messageIn(entry));
      if (entry.event === "done") output = outputIn(entry) ?? output;
    }
  }
  const ended = await getRun({ stores }, key);
  const { status, stop_reason, usage, error } = ended;
  if (status === "pending" || status === "running")
    throw new AppError("shutting_down", `The runtime was closed before run \`${run.id}\` ended.`);
  const interrupts = status === "interrupted" ? await openOn(stores.threads, owner, run.thread_id) : [];
  const cause = causes.get(run.id);
  const message = messages.findLast((each) => each.role === "assistant");
  return {
    run: ended,
    status,
    text: message?.content ?? "",
    messages,
    usage,
    interrupts,
    ...omitUndefined({
      stop_reason,
      message,
      output: output === undefined ? undefined : readOutput(run.agent, output),
      error: error && ({ ...error, ...omitUndefined({ cause }) } as RunResult["error"]),
    }),
  };
}

const outputIn = (entry: LogEntry): unknown => {
  const event = storedEvent(entry);
  return event.event === "done" && !event.path ? event.data.output : undefined;
};

/** Omits messages of subagents, which belong to their own threads. */
function messageIn(entry: LogEntry): Message[] {
  const event = storedEvent(entry);
  return event.event === "on_message" && !event.path ? [event.data.message] : [];
}
